//! Jobs may be called like anything in the prelude: the payload's suffix keeps it from shadowing.
#![deny(warnings)]

use emq::job;

macro_rules! jobs {
    ($($name:ident)*) => { $(#[job] async fn $name(value: u8) { let _ = value; })* };
}

jobs! { send sync sized copy clone drop default option some none result ok err string vec to_owned into from r#type r#match r#fn job handler
    scope future eq ord hash debug iterator box_ self_ state context main_ run serialize deserialize emq core std u8 bool str }

#[derive(Clone, Default, Debug, PartialEq)]
struct Ordinary(Option<String>);

fn register<J: emq::Handler<()>>() -> &'static str {
    J::NAME
}

fn main() {
    let ordinary = Ordinary::default();
    assert_eq!(ordinary.clone(), ordinary);
    assert_eq!(register::<SendJob>(), "send");
    assert_eq!(register::<TypeJob>(), "type");
    assert_eq!(register::<FnJob>(), "fn");
    std::mem::drop(DropJob { value: 1 });
    assert!(Result::<_, ()>::Ok(Some(Vec::<Box<u8>>::new())).is_ok());
    let _ = (
        ord(1), hash(1), debug(1), iterator(1), box_(1), self_(1), state(1), context(1), main_(1), run(1), serialize(1),
        deserialize(1), emq(1), core(1), std(1), u8(1), bool(1), str(1),
        sync(1), sized(1), copy(1), clone(1), default(1), option(1), some(1), none(1), result(1), ok(1), err(1), string(1),
        vec(1), to_owned(1), into(1), from(1), r#match(1), job(1), handler(1), scope(1), future(1), eq(1),
    );
}
