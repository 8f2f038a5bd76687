use emq::job;

#[job]
const SEND: u8 = 1;

fn main() { let _ = SEND; }
