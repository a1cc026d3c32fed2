//! A profile begins once per process, and says why if it does not.

#![cfg(target_arch = "x86_64")]

use std::fs;

use spinpark::profile::{self, Error};
use spinpark::{Condvar, Mutex, ReentrantMutex, RwLock};

#[test]
fn it_begins_once() {
    let directory = std::env::temp_dir().join(format!("spinpark-profile-{}", std::process::id()));
    let mutex = Mutex::new(());
    profile::name(&mutex, "nothing is recorded");

    fs::write(&directory, "in the way").unwrap();
    let error = profile::start(&directory).unwrap_err();
    assert!(matches!(error, Error::Create(..)), "{error}");
    assert!(error.to_string().contains("name a directory that can be written"));
    fs::remove_file(&directory).unwrap();

    let profile = profile::start(&directory).unwrap();
    let start = format!("{}-", std::process::id());
    let names =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: Vec<String> = names.filter(|name| name.ends_with(".spinprof")).collect();
    assert!(files.len() == 1 && files[0].starts_with(&start), "{files:?}");
    assert!(matches!(profile::start(&directory).unwrap_err(), Error::Again));
    profile::name(&mutex, "mutex");
    profile::name(&ReentrantMutex::new(()), "reentrant mutex");
    profile::name(&RwLock::new(()), "rwlock\0 and what is behind a zero");
    profile::name(&Condvar::new(), "condvar");
    profile::name(&*Box::new(Mutex::new([0])) as &Mutex<[i32]>, "unsized");
    profile.stop();
    assert!(matches!(profile::start(&directory).unwrap_err(), Error::Again));
    fs::remove_dir_all(&directory).unwrap();
}
