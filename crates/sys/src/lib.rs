//! The only unsafe code: ring, sockets, huge-page buffer pool, direct files, affinity.
