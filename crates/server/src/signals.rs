//! Signals that stop the server.

use crate::serve::Server;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT that arrive after [`Signals::listen`].
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// # Errors
    /// The system refuses a handler; the error is a message for the user.
    pub fn listen() -> Result<Signals, String> {
        let listen = |kind| signal(kind).map_err(|e| format!("could not listen for signals: {e}"));
        Ok(Signals { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// Waits for a signal and returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Stops the server; another signal ends the process at once.
    ///
    /// # Errors
    /// The message for the user.
    pub async fn stop(&mut self, server: Server) -> Result<(), String> {
        tokio::select! {
            stopped = server.stop() => stopped.map_err(|e| format!("the database did not close cleanly: {e}")),
            _ = self.next() => {
                print_err!("tidalite: stopped at once by a second signal; acknowledged rows are in the log");
                std::process::exit(1)
            }
        }
    }
}
