use emq::{JobContext, inject::ReportError, layer::Delivery};

use crate::scene::{Scene, scene};

impl Scene {
    /// The context of a job's run, as a loop of one's own makes it.
    pub(crate) async fn context(&mut self) -> JobContext {
        self.enqueue().await;
        let job = self.claim().await;
        let delivery = Delivery::new(self.queue.name(), job, emq::JobOptions::new());
        delivery.reporting_to(&self.client).context().clone()
    }
}

#[tokio::test]
async fn the_last_one_is_kept_with_the_job() {
    let mut scene = scene("progress").await;
    let ctx = scene.context().await;
    let queue = scene.queue.clone();
    assert_eq!(queue.get(ctx.id()).await.unwrap().unwrap().progress_as::<(u8, u8)>().unwrap(), None);
    let (told, changes) = scene.changes(ctx.progress(&(3, 10))).await;
    told.unwrap();
    assert_eq!(changes, ["+ job:J1 hash progress = [3,10]"]);
    let (told, changes) = scene.changes(ctx.progress("half")).await;
    told.unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    let stored = queue.get(ctx.id()).await.unwrap().unwrap();
    assert_eq!(stored.progress_as::<String>().unwrap().as_deref(), Some("half"));
    assert!(stored.progress_as::<u8>().is_err());
    let error = scene.unchanged(ctx.progress(&"x".repeat(64 << 10))).await.unwrap_err();
    assert!(matches!(error, ReportError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_run_that_has_lost_its_job_tells_nothing() {
    let mut scene = scene("progress").await;
    let ctx = scene.context().await;
    scene.expire(ctx.id()).await;
    let queue = scene.queue.clone();
    queue.reap(None).await.unwrap();
    for claimed_again in [false, true] {
        if claimed_again {
            scene.claim().await;
        }
        let told = scene.unchanged(ctx.progress(&1)).await;
        assert!(matches!(told, Err(ReportError::Stale)), "{told:?}");
        let told = scene.unchanged(ctx.log("late")).await;
        assert!(matches!(told, Err(ReportError::Stale)), "{told:?}");
    }
}
