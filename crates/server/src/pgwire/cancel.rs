//! Who may cancel what: each connection has a number and a secret key, and a request with both cancels its statement.

use ring::rand::{SecureRandom, SystemRandom};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidalite::Database;

/// The connections that are open.
#[derive(Debug, Default)]
pub struct Backends(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    last: i32,
    open: HashMap<i32, (i32, String)>,
}

/// One of them; dropping it takes it off the list.
pub struct Backend<'a> {
    pub id: i32,
    pub key: i32,
    /// Under which its statements are listed; nobody else's are.
    pub client: String,
    backends: &'a Backends,
}

impl Backends {
    pub fn enter(&self, client: String) -> Backend<'_> {
        let mut bytes = [0; 4];
        // Without a random key nobody can cancel this connection's statements, which harms nobody else.
        let has_key = SystemRandom::new().fill(&mut bytes).is_ok();
        let key = i32::from_be_bytes(bytes);
        let mut inner = self.lock();
        inner.last = inner.last.checked_add(1).unwrap_or(1);
        let id = inner.last;
        let client = format!("{client} #{id}");
        if has_key {
            inner.open.insert(id, (key, client.clone()));
        }
        Backend { id, key, client, backends: self }
    }

    /// Cancels what the connection runs, if the key is its.
    pub fn cancel(&self, database: &Database, id: i32, key: i32) {
        let client = match self.lock().open.get(&id) {
            Some((its, client)) if *its == key => client.clone(),
            _ => return,
        };
        for statement in database.activity().iter().filter(|s| s.client == client) {
            database.cancel(statement.id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Backend<'_> {
    fn drop(&mut self) {
        self.backends.lock().open.remove(&self.id);
    }
}
