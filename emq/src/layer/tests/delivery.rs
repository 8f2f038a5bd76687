use tokio::time::Instant;

use super::SECOND;
use crate::{
    job::{JobOptions, QueueName},
    layer::Delivery,
    store::{Claimed, Lease},
    testing,
};

#[tokio::test]
async fn a_delivery_tells_what_was_claimed() {
    let id = "JOB0JZGkP9AMvv".parse().unwrap();
    let claimed = Claimed {
        lease: Lease::new(id, 7),
        max_attempts: Some(9),
        headers: [("tenant".into(), "north".into())].into(),
        leased_until: Instant::now() + SECOND,
        term: SECOND,
        ..testing::claimed("enroll", b"{}".to_vec())
    };
    let options = JobOptions::new().max_attempts(5).lease(SECOND * 2);
    let mut delivery = Delivery::new(&QueueName::new("mail").unwrap(), claimed, options);
    assert_eq!((delivery.id(), delivery.token(), delivery.lease()), (id, 7, Lease::new(id, 7)));
    assert_eq!((delivery.name(), delivery.queue().as_str(), &delivery.payload()[..]), ("enroll", "mail", &b"{}"[..]));
    assert_eq!((delivery.header("tenant"), delivery.header("Tenant")), (Some("north"), None));
    assert_eq!(*delivery.options(), options);
    assert_eq!((delivery.context().max_attempts(), delivery.context().lease()), (9, SECOND * 2));

    delivery.extensions_mut().insert(7_u8);
    assert_eq!(delivery.clone().extensions().get::<u8>(), Some(&7), "what a layer leaves is there for the next");
}
