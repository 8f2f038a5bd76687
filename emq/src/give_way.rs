use std::{future::poll_fn, task::Poll};

/// Lets other tasks run first. Not by Tokio's `yield_now`, which keeps a task on its thread: if a job then blocks that, the
/// task isn't run before the end of it. Here another thread may take it.
pub(crate) async fn give_way() {
    let mut has_given_way = false;
    poll_fn(|cx| {
        if has_given_way {
            return Poll::Ready(());
        }
        has_given_way = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
