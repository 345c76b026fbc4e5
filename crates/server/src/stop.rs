//! The signal to stop, as seen by everything that serves.

use tokio::sync::watch;

/// Gives the signal.
pub struct StopSignal(watch::Sender<bool>);

/// Waits for it. Clones wait for the same signal.
#[derive(Clone)]
pub struct Stop(watch::Receiver<bool>);

#[must_use]
pub fn channel() -> (StopSignal, Stop) {
    let (sender, receiver) = watch::channel(false);
    (StopSignal(sender), Stop(receiver))
}

impl StopSignal {
    pub fn give(&self) {
        let _ = self.0.send(true);
    }
}

impl Stop {
    /// Ready once the signal was given, or can no longer be.
    pub async fn wait(&mut self) {
        let _ = self.0.wait_for(|stopped| *stopped).await;
    }
}
