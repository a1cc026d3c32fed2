//! Files and memory: what a recorder needs to keep tables in a file.

use core::ffi::CStr;
use core::ptr::NonNull;

use crate::raw::call6;

/// `MADV_POPULATE_WRITE` of Linux 5.14.
const POPULATE_WRITE: usize = 23;
/// `MADV_WIPEONFORK` of Linux 4.14.
const WIPE_ON_FORK: usize = 18;

/// Creates a file that does not exist yet, for reading and writing; a negative errno on failure.
#[must_use]
pub fn create(path: &CStr) -> i32 {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0o644, 0, 0];
    // SAFETY: a C string that the kernel reads.
    let file = unsafe { call6(libc::SYS_openat, arguments) as i32 };
    give_to_owner(file);
    file
}

/// Creates a file in memory, for reading and writing: it is gone when no process has it. A negative errno on
/// failure.
#[must_use]
pub fn create_in_memory(name: &CStr) -> i32 {
    /// `MFD_NOEXEC_SEAL` of Linux 6.3: systems may insist on it.
    const NEVER_EXECUTED: u32 = 8;
    let create = |flags: u32| {
        let arguments = [name.as_ptr() as usize, flags as usize, 0, 0, 0, 0];
        // SAFETY: a C string that the kernel reads.
        unsafe { call6(libc::SYS_memfd_create, arguments) as i32 }
    };
    match create(libc::MFD_CLOEXEC | NEVER_EXECUTED) {
        error if error == -libc::EINVAL => create(libc::MFD_CLOEXEC),
        file => file,
    }
}

/// Opens a file for reading and writing, and creates it if it is not there; a negative errno on failure.
#[must_use]
pub fn open_or_create(path: &CStr) -> i32 {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0o644, 0, 0];
    // SAFETY: a C string that the kernel reads.
    let file = unsafe { call6(libc::SYS_openat, arguments) as i32 };
    give_to_owner(file);
    file
}

/// Opens an existing file for writing; a negative errno on failure.
#[must_use]
pub fn open_write(path: &CStr) -> i32 {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0, 0, 0];
    // SAFETY: a C string that the kernel reads.
    unsafe { call6(libc::SYS_openat, arguments) as i32 }
}

/// Lets the owner of a file read and write it, whatever the umask of the process that has created it.
fn give_to_owner(file: i32) {
    if let Some(mode) =
        status(file).map(|status| status.st_mode & 0o7777).filter(|mode| mode & 0o600 != 0o600)
    {
        // SAFETY: no memory is touched. If it is another user's file, nothing happens.
        unsafe { call6(libc::SYS_fchmod, [file as usize, (mode | 0o600) as usize, 0, 0, 0, 0]) };
    }
}

/// Writes the path of the working directory, ended by a zero; its length with that zero, or a negative errno.
pub fn working_directory(bytes: &mut [u8]) -> isize {
    // SAFETY: the kernel writes at most the length of `bytes` there.
    unsafe { call6(libc::SYS_getcwd, [bytes.as_mut_ptr() as usize, bytes.len(), 0, 0, 0, 0]) }
}

/// Makes a directory in which its owner may write, but not its parents. An existing one is no failure.
pub fn make_directory(path: &CStr) -> bool {
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, 0o777, 0, 0, 0];
    // SAFETY: a C string that the kernel reads.
    let result = unsafe { call6(libc::SYS_mkdirat, arguments) as i32 };
    if result == 0 {
        let file = open_read(path);
        // The umask of the process may forbid even the owner to use it.
        let mode = if file < 0 { Some(0) } else { status(file).map(|status| status.st_mode & 0o777) };
        if let Some(mode) = mode.filter(|mode| mode & 0o700 != 0o700) {
            let arguments =
                [libc::AT_FDCWD as usize, path.as_ptr() as usize, (mode | 0o700) as usize, 0, 0, 0];
            // SAFETY: a C string that the kernel reads.
            unsafe { call6(libc::SYS_fchmodat, arguments) };
        }
        if file >= 0 {
            super::close(file);
        }
    }
    result == 0 || result == -libc::EEXIST
}

/// Makes a directory for its owner alone; whether there was none before.
#[must_use]
pub fn make_private_directory(path: &CStr) -> bool {
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, 0o700, 0, 0, 0];
    // SAFETY: a C string that the kernel reads.
    unsafe { call6(libc::SYS_mkdirat, arguments) == 0 }
}

/// Removes a directory, if it is there and empty.
pub fn remove_directory(path: &CStr) {
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, libc::AT_REMOVEDIR as usize, 0, 0, 0];
    // SAFETY: a C string that the kernel reads.
    unsafe { call6(libc::SYS_unlinkat, arguments) };
}

/// Removes a file, if it is there.
pub fn remove(path: &CStr) {
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, 0, 0, 0, 0];
    // SAFETY: a C string that the kernel reads.
    unsafe { call6(libc::SYS_unlinkat, arguments) };
}

/// Opens a file for reading, without a wait for the other end of a pipe; a negative errno on failure.
#[must_use]
pub fn open_read(path: &CStr) -> i32 {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let arguments = [libc::AT_FDCWD as usize, path.as_ptr() as usize, flags as usize, 0, 0, 0];
    // SAFETY: a C string that the kernel reads.
    unsafe { call6(libc::SYS_openat, arguments) as i32 }
}

/// Reads into `bytes`; how many there were, 0 at the end, a negative errno on failure.
pub fn read(file: i32, bytes: &mut [u8]) -> isize {
    let arguments = [file as usize, bytes.as_mut_ptr() as usize, bytes.len(), 0, 0, 0];
    // SAFETY: the kernel writes at most the length of `bytes` there.
    unsafe { call6(libc::SYS_read, arguments) }
}

/// Reads from an offset in a file; does not move the file's own offset. Returns what [`read`] does.
pub fn read_at(file: i32, bytes: &mut [u8], from: u64) -> isize {
    let arguments = [file as usize, bytes.as_mut_ptr() as usize, bytes.len(), from as usize, 0, 0];
    // SAFETY: the kernel writes at most the length of `bytes` there.
    unsafe { call6(libc::SYS_pread64, arguments) }
}

/// Reads where a symbolic link points to; its length, at most that of `bytes`, or a negative errno.
pub fn read_link(path: &CStr, bytes: &mut [u8]) -> isize {
    let arguments =
        [libc::AT_FDCWD as usize, path.as_ptr() as usize, bytes.as_mut_ptr() as usize, bytes.len(), 0, 0];
    // SAFETY: the kernel reads a C string, and writes at most the length of `bytes`.
    unsafe { call6(libc::SYS_readlinkat, arguments) }
}

/// The longest file that this process may write, bytes: beyond it the kernel sends a signal.
#[must_use]
pub fn longest_file() -> u64 {
    limit(libc::RLIMIT_FSIZE as usize)
}

/// How large the main thread's stack may become, bytes.
#[must_use]
pub fn largest_stack() -> u64 {
    limit(libc::RLIMIT_STACK as usize)
}

/// How many addresses this process may have, bytes.
#[must_use]
pub fn largest_space() -> u64 {
    limit(libc::RLIMIT_AS as usize)
}

fn limit(of: usize) -> u64 {
    let mut limit = libc::rlimit64 { rlim_cur: u64::MAX, rlim_max: u64::MAX };
    let arguments = [0, of, 0, core::ptr::addr_of_mut!(limit) as usize, 0, 0];
    // SAFETY: the kernel writes one such structure.
    unsafe { call6(libc::SYS_prlimit64, arguments) };
    limit.rlim_cur
}

/// Sets the length of a file; whether that worked.
#[must_use]
pub fn set_length(file: i32, length: usize) -> bool {
    // SAFETY: no memory is touched.
    unsafe { call6(libc::SYS_ftruncate, [file as usize, length, 0, 0, 0, 0]) == 0 }
}

/// Allocates disk space for a piece of a file; whether there was enough.
#[must_use]
pub fn allocate(file: i32, offset: usize, length: usize) -> bool {
    // SAFETY: no memory is touched.
    unsafe { call6(libc::SYS_fallocate, [file as usize, 0, offset, length, 0, 0]) == 0 }
}

/// Device and inode number of an open file, which identify it.
#[must_use]
pub fn identity(file: i32) -> Option<(u64, u64)> {
    status(file).map(|status| (status.st_dev, status.st_ino))
}

/// Whether an open file is a log: one that is only written to, at its end.
#[must_use]
pub fn is_log(file: i32) -> bool {
    // SAFETY: no memory is touched.
    let flags = unsafe { call6(libc::SYS_fcntl, [file as usize, libc::F_GETFL as usize, 0, 0, 0, 0]) };
    let is_file = status(file).is_some_and(|status| status.st_mode & libc::S_IFMT == libc::S_IFREG);
    is_file
        && flags >= 0
        && flags as i32 & (libc::O_ACCMODE | libc::O_APPEND) == libc::O_WRONLY | libc::O_APPEND
}

fn status(file: i32) -> Option<libc::stat> {
    let mut stat = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel writes one such structure.
    let result = unsafe { call6(libc::SYS_fstat, [file as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    // SAFETY: all zero is one, too.
    let stat = unsafe { stat.assume_init() };
    (result == 0).then_some(stat)
}

/// Maps the first `length` bytes of a file, shared with all that do; no access is possible before
/// [`open_mapping`].
#[must_use]
pub fn map_file(file: i32, length: usize) -> Option<NonNull<u8>> {
    map(length, libc::PROT_NONE, libc::MAP_SHARED | libc::MAP_NORESERVE, file)
}

/// Lets a piece of a mapping be read and written; whether that worked. Whole pages.
#[must_use]
pub fn open_mapping(start: *mut u8, length: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: no byte changes, and nothing is unmapped.
    unsafe { call6(libc::SYS_mprotect, [start as usize, length, access as usize, 0, 0, 0]) == 0 }
}

/// Private memory, all zero; pages that are not touched cost nothing.
#[must_use]
pub fn map_zero(length: usize) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    map(length, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)
}

/// Puts the first `length` bytes of a file, shared with all that map it, in the place of this memory, in one
/// step: other threads find the one or the other. Whether that worked. Whole pages.
///
/// # Safety
///
/// It is memory of the caller, in which any bytes are valid, and may change at any time.
#[must_use]
pub unsafe fn map_file_over(start: *mut u8, length: usize, file: i32) -> bool {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
    let arguments = [start as usize, length, access as usize, flags as usize, file as usize, 0];
    // SAFETY: the caller's promise.
    unsafe { call6(libc::SYS_mmap, arguments) == start as isize }
}

/// Lets private memory of [`map_zero`] be all zero again, and gives its pages back; whether that worked (not
/// if it is locked). Whole pages.
///
/// # Safety
///
/// All zero is valid there, and its bytes may change at any time.
#[must_use]
pub unsafe fn wipe(start: *mut u8, length: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { call6(libc::SYS_madvise, [start as usize, length, libc::MADV_DONTNEED as usize, 0, 0, 0]) == 0 }
}

fn map(length: usize, access: i32, flags: i32, file: i32) -> Option<NonNull<u8>> {
    let arguments = [0, length, access as usize, flags as usize, file as usize, 0];
    // SAFETY: the kernel chooses a place where nothing is.
    let address = unsafe { call6(libc::SYS_mmap, arguments) };
    if address < 0 && address > -4096 {
        return None;
    }
    NonNull::new(address as *mut u8)
}

/// Gives mapped memory back.
///
/// # Safety
///
/// It is not used any more.
pub unsafe fn unmap(start: NonNull<u8>, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { call6(libc::SYS_munmap, [start.as_ptr() as usize, length, 0, 0, 0, 0]) };
}

/// Makes the pages of a mapping writable now, so that a full disk is an error here and not a signal later.
/// Whether that worked; `None` if this kernel cannot do it. Whole pages.
#[must_use]
pub fn populate(start: *mut u8, length: usize) -> Option<bool> {
    // SAFETY: no byte changes.
    match unsafe { call6(libc::SYS_madvise, [start as usize, length, POPULATE_WRITE, 0, 0, 0]) } {
        0 => Some(true),
        error if error == -(libc::EINVAL as isize) || error == -(libc::ENOSYS as isize) => None,
        _ => Some(false),
    }
}

/// Says that a mapping of a file is not touched in order, so that the kernel reads no pages around those that
/// are.
pub fn expect_no_order(start: *mut u8, length: usize) {
    // SAFETY: no byte changes; on failure nothing does.
    unsafe { call6(libc::SYS_madvise, [start as usize, length, libc::MADV_RANDOM as usize, 0, 0, 0]) };
}

/// Lets private memory be all zero in children, however they are made; whether this kernel can do that. Whole
/// pages.
pub fn wipe_on_fork(start: *mut u8, length: usize) -> bool {
    // SAFETY: no byte of this process changes.
    unsafe { call6(libc::SYS_madvise, [start as usize, length, WIPE_ON_FORK, 0, 0, 0]) == 0 }
}

/// Reads memory of this process that may not be there; whether it was.
#[must_use]
pub fn read_memory(address: usize, words: &mut [usize]) -> bool {
    let length = core::mem::size_of_val(words);
    let to = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: length };
    let from = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
    let (to, from) = (core::ptr::addr_of!(to) as usize, core::ptr::addr_of!(from) as usize);
    let arguments = [super::process_id() as usize, to, 1, from, 1, 0];
    // SAFETY: the kernel writes to `words`, and checks what it reads.
    unsafe { call6(libc::SYS_process_vm_readv, arguments) == length as isize }
}
