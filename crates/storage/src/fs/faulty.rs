//! A simulated disk that fails and crashes on demand.
