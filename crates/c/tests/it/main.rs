//! The C and C++ library as its users have it: installed by `install.sh`, with programs that are compiled
//! against it.

mod consumers;
mod headers;
mod library;
mod programs;
mod symbols;
mod tsan;
