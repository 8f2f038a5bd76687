//! Dumps of keys, and what differs between two.

use support::{Dump, Raw};

/// Fills one key of each kind, and one beside the pattern.
async fn filled() -> (Raw, String, Dump) {
    let mut raw = Raw::connect(support::server().await).await;
    let q = support::queue_name("dump");
    for command in [
        "SET emq:{Q}:done 1 EX 100",
        "HSET emq:{Q}:job:7 name mail attempts 2",
        "RPUSH emq:{Q}:wait z a",
        "ZADD emq:{Q}:live 12 z 3.5 a",
        "SADD emq:{Q}:names y x",
        "XADD emq:{Q}:log 1-1 f v",
        "SET emq:{Q}-other 1",
    ] {
        raw.line(&command.replace('Q', &q)).await;
    }
    let dump = Dump::of(&mut raw, &format!("emq:{{{q}}}:*")).await;
    (raw, q, dump)
}

#[tokio::test]
async fn one_line_per_member_in_a_stable_order() {
    let (_raw, q, dump) = filled().await;
    let expected = "\
emq:{Q}:done (expires)
emq:{Q}:done string = 1
emq:{Q}:job:7 hash attempts = 2
emq:{Q}:job:7 hash name = mail
emq:{Q}:live zset a @ 3.5
emq:{Q}:live zset z @ 12
emq:{Q}:log stream [0] = [\"1-1\", [\"f\", \"v\"]]
emq:{Q}:names set x
emq:{Q}:names set y
emq:{Q}:wait list [0] = z
emq:{Q}:wait list [1] = a
";
    assert_eq!(dump.to_string(), expected.replace('Q', &q));
    assert_eq!(dump.lines().len(), 11);
    assert_eq!(dump.keys().len(), 6);
}

#[tokio::test]
async fn members_can_be_looked_up() {
    let (_raw, q, dump) = filled().await;
    let key = |name: &str| format!("emq:{{{q}}}:{name}");
    assert_eq!(dump.get(&key("job:7"), "attempts"), Some("2"));
    assert_eq!(dump.get(&key("live"), "a"), Some("3.5"));
    assert_eq!(dump.get(&key("done"), ""), Some("1"));
    assert_eq!(dump.get(&key("wait"), "[1]"), Some("a"));
    assert_eq!(dump.get(&key("job:7"), "none"), None);
    assert!(dump.expires(&key("done")));
    assert!(!dump.expires(&key("wait")));
}

#[tokio::test]
async fn the_difference_names_what_came_went_and_changed() {
    let (mut raw, q, before) = filled().await;
    for command in
        ["PERSIST emq:{Q}:done", "HINCRBY emq:{Q}:job:7 attempts 1", "ZREM emq:{Q}:live a", "RPUSH emq:{Q}:wait b"]
    {
        raw.line(&command.replace('Q', &q)).await;
    }
    let after = Dump::of(&mut raw, &format!("emq:{{{q}}}:*")).await;
    let expected = [
        "- emq:{Q}:done (expires)",
        "~ emq:{Q}:job:7 hash attempts = 3 (was 2)",
        "- emq:{Q}:live zset a @ 3.5",
        "+ emq:{Q}:wait list [2] = b",
    ];
    assert_eq!(before.diff(&after), expected.map(|line| line.replace('Q', &q)));
    assert_ne!(before, after);
    assert!(before.diff(&before.clone()).is_empty());
}

#[tokio::test]
async fn parts_can_be_left_out() {
    let (_raw, q, dump) = filled().await;
    let rest = dump.without("*:log").without("*:job:? attempts").without("*:done").without("*:live ?");
    let expected = [
        "emq:{Q}:job:7 hash name = mail",
        "emq:{Q}:names set x",
        "emq:{Q}:names set y",
        "emq:{Q}:wait list [0] = z",
        "emq:{Q}:wait list [1] = a",
    ];
    assert_eq!(rest.lines(), expected.map(|line| line.replace('Q', &q)));
    assert!(dump.without("*").is_empty());
}

#[tokio::test]
async fn text_is_readable_and_other_bytes_are_escaped() {
    let mut raw = Raw::connect(support::server().await).await;
    let key = support::queue_name("bytes");
    let set: [&[u8]; 3] = [b"SET", key.as_bytes(), b"{\"n\":\"\xC3\xA9\"}\n\\\xFF\x00"];
    raw.command(&set).await;
    let dump = Dump::of(&mut raw, &key).await;
    assert_eq!(dump.get(&key, ""), Some("{\"n\":\"é\"}\\n\\\\\\xff\\u{0}"));
}
