//! End to end: the real program, real sockets, real files.
