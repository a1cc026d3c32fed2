//! Stacks: the caller, its caller, and so on.
//!
//! Unwind tables tell for sure, frame pointers cannot be told from junk. So the unwinder of `libgcc_s` is asked, which C++ and
//! Rust programs have loaded anyway; it is loaded at the start of the process, since that allocates. With glibc 2.35 or
//! later it finds tables without a lock (`_dl_find_object`); with an older one it takes the loader's, which a thread that
//! waits for this one may hold: there, and without the library, the frame pointers are followed, with bounds.
//!
//! A stack that is not the thread's own is not unwound ([`super::stack_bounds`]), nor any while a thread holds the
//! unwinder's own mutex ([`super::unwinder_lock`]), nor that of a call from the unwinder, which is about to lock it:
//! those have their caller only.
//!
//! A capture also learns *where on the stack* each return address lies. Unwinding costs microseconds, a look whether the
//! same addresses still lie in the same places some nanoseconds: so a known stack is recognised ([`Trace::still_holds`]), and
//! one that is not is followed without unwinding if each of its addresses is known ([`super::steps`]).

use core::ffi::{c_int, c_void};
use core::mem::{self, MaybeUninit};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

use spinpark_linux::{lookup, raw, Library, Scope};

use super::site::Site;
use super::stack_bounds::Bounds;
use super::unwinder_lock::UnwinderLock;
use crate::format::FRAMES;

/// How a stack was captured; the numbers of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Method {
    Tables = 0,
    FramePointers = 1,
    Caller = 2,
}

/// A captured stack.
pub(crate) struct Trace {
    pub(crate) depth: usize,
    pub(crate) is_cut: bool,
    pub(crate) method: Method,
    pub(crate) frames: [u64; FRAMES],
    /// Where each address lies, words above the stack pointer; 0 (but for the first) if it lies nowhere.
    pub(crate) places: [u32; FRAMES],
    /// Where the next address lies, if it is cut; 0 if that is not known.
    pub(crate) place_beyond: u32,
    /// Another time there may be more.
    pub(crate) is_for_now: bool,
}

impl Trace {
    pub(crate) const fn empty() -> Self {
        Self {
            depth: 0,
            is_cut: false,
            method: Method::Caller,
            frames: [0; FRAMES],
            places: [0; FRAMES],
            place_beyond: 0,
            is_for_now: false,
        }
    }

    /// What is known without any unwinding.
    pub(crate) fn of_caller(site: Site) -> Self {
        let mut trace = Self { is_for_now: true, ..Self::empty() };
        trace.push(site.caller(), 0);
        trace
    }

    pub(crate) fn push(&mut self, address: usize, place: u32) -> bool {
        if self.depth == FRAMES {
            self.is_cut = true;
            self.place_beyond = place;
            return false;
        }
        self.frames[self.depth] = address as u64;
        self.places[self.depth] = place;
        self.depth += 1;
        true
    }

    /// Whether these addresses lie in these places above `stack` now.
    ///
    /// # Safety
    ///
    /// The places were captured by this thread, for this `stack`: so each is on the thread's own stack, above it.
    #[inline]
    pub(crate) unsafe fn still_holds(stack: *const usize, frames: &[u64], places: &[u32]) -> bool {
        frames.iter().zip(places).skip(1).all(|(frame, place)| {
            // SAFETY: the caller's promise.
            *place == 0 || unsafe { stack.wrapping_add(*place as usize).read_volatile() } as u64 == *frame
        })
    }
}

type Context = c_void;
type Callback = unsafe extern "C" fn(*mut Context, *mut c_void) -> c_int;
type Backtrace = unsafe extern "C" fn(Callback, *mut c_void) -> c_int;
type GetIpInfo = unsafe extern "C" fn(*mut Context, *mut c_int) -> usize;
type GetCfa = unsafe extern "C" fn(*mut Context) -> usize;

/// glibc's `struct dl_find_object`: what is at an address.
#[repr(C)]
struct Object {
    flags: u64,
    start: usize,
    end: usize,
    rest: [usize; 10],
}
type FindObject = unsafe extern "C" fn(*mut c_void, *mut Object) -> c_int;

/// `_URC_NO_REASON`, go on; and `_URC_END_OF_STACK`.
const GO_ON: c_int = 0;
const STOP: c_int = 5;

/// How stacks are captured in this process.
#[derive(Debug)]
pub(crate) struct Unwinder {
    backtrace: AtomicPtr<c_void>,
    get_ip: AtomicPtr<c_void>,
    get_cfa: AtomicPtr<c_void>,
    /// glibc's `_dl_find_object`, which takes no lock; null before glibc 2.35.
    find_object: AtomicPtr<c_void>,
    /// Where the unwinder's code lies: addresses from and to.
    from: AtomicUsize,
    to: AtomicUsize,
    /// Whether frame pointers are followed.
    by_frame: AtomicU32,
    lock: UnwinderLock,
}

impl Unwinder {
    pub(crate) const fn new() -> Self {
        Self {
            backtrace: AtomicPtr::new(core::ptr::null_mut()),
            get_ip: AtomicPtr::new(core::ptr::null_mut()),
            get_cfa: AtomicPtr::new(core::ptr::null_mut()),
            find_object: AtomicPtr::new(core::ptr::null_mut()),
            from: AtomicUsize::new(0),
            to: AtomicUsize::new(0),
            by_frame: AtomicU32::new(0),
            lock: UnwinderLock::new(),
        }
    }

    /// Finds the unwinder. Allocates.
    pub(crate) fn start(&self) {
        self.by_frame.store(1, Relaxed);
        let find_object = lookup(Scope::All, c"_dl_find_object");
        if find_object.is_null() {
            return;
        }
        self.find_object.store(find_object, Relaxed);
        let Some(library) = Library::open(c"libgcc_s.so.1") else { return };
        self.get_ip.store(library.lookup(c"_Unwind_GetIPInfo"), Relaxed);
        self.get_cfa.store(library.lookup(c"_Unwind_GetCFA"), Relaxed);
        let backtrace = library.lookup(c"_Unwind_Backtrace");
        let Some(object) = self.object(backtrace as usize) else { return };
        self.from.store(object.start, Relaxed);
        self.to.store(object.end, Relaxed);
        self.lock.start(object.start);
        self.backtrace.store(backtrace, Relaxed);
    }

    /// The module that has an address, as the loader knows it now.
    fn object(&self, address: usize) -> Option<Object> {
        let find_object = self.find_object.load(Relaxed);
        if find_object.is_null() || address == 0 {
            return None;
        }
        // SAFETY: the function of that name.
        let find_object = unsafe { mem::transmute::<*mut c_void, FindObject>(find_object) };
        let mut object = MaybeUninit::<Object>::zeroed();
        // SAFETY: an address, and room for the answer.
        let result = unsafe { find_object(address as *mut c_void, object.as_mut_ptr()) };
        // SAFETY: all zero is one.
        (result == 0).then(|| unsafe { object.assume_init() })
    }

    /// Whether [`Unwinder::module`] can tell.
    pub(crate) fn knows_modules(&self) -> bool {
        !self.find_object.load(Relaxed).is_null()
    }

    /// Where the module that has an address lies: from and to. Takes no lock.
    pub(crate) fn module(&self, address: u64) -> Option<(u64, u64)> {
        self.object(address as usize).map(|object| (object.start as u64, object.end as u64))
    }

    /// Whether it is the unwinder that calls.
    fn calls(&self, site: Site) -> bool {
        (self.from.load(Relaxed)..self.to.load(Relaxed)).contains(&site.caller())
    }

    /// How stacks are captured here.
    pub(crate) fn method(&self) -> Method {
        if self.backtrace.load(Relaxed).is_null() {
            Method::FramePointers
        } else {
            Method::Tables
        }
    }

    /// Captures the stack above `site`: of `thread`, whose own stack lies in `bounds`.
    pub(crate) fn capture(&self, site: Site, bounds: Bounds, thread: u32) -> Trace {
        let is_unwound = !self.backtrace.load(Relaxed).is_null();
        let is_for_now = is_unwound && self.lock.is_held(thread);
        if is_unwound && (is_for_now || self.calls(site) || !bounds.has_room(site)) {
            return Trace { is_for_now, ..Trace::of_caller(site) };
        }
        self.walk(site, bounds)
    }

    // Not a part of its caller, which may have little room on the stack.
    #[inline(never)]
    fn walk(&self, site: Site, bounds: Bounds) -> Trace {
        let mut walk =
            Walk { site, bounds, trace: Trace::empty(), get_ip: None, get_cfa: None, is_above: false };
        // SAFETY: null, or the function of that name; `Option<fn>` has null for `None`.
        let backtrace =
            unsafe { mem::transmute::<*mut c_void, Option<Backtrace>>(self.backtrace.load(Relaxed)) };
        // SAFETY: as above.
        walk.get_ip = unsafe { mem::transmute::<*mut c_void, Option<GetIpInfo>>(self.get_ip.load(Relaxed)) };
        // SAFETY: as above.
        walk.get_cfa = unsafe { mem::transmute::<*mut c_void, Option<GetCfa>>(self.get_cfa.load(Relaxed)) };
        if let Some(backtrace) = backtrace {
            // SAFETY: calls `step` with this context, which lives as long.
            unsafe { backtrace(step, core::ptr::addr_of_mut!(walk).cast()) };
        }
        let mut trace = walk.trace;
        if trace.depth > 0 {
            trace.method = Method::Tables;
            return trace;
        }
        trace.push(site.caller(), 0);
        if self.by_frame.load(Relaxed) != 0 {
            follow_frames(site, bounds, &mut trace);
        }
        trace
    }
}

struct Walk {
    site: Site,
    bounds: Bounds,
    trace: Trace,
    get_ip: Option<GetIpInfo>,
    get_cfa: Option<GetCfa>,
    /// The recorder's own frames are behind.
    is_above: bool,
}

unsafe extern "C" fn step(context: *mut Context, walk: *mut c_void) -> c_int {
    // SAFETY: from `capture`, which waits for this.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    let (Some(get_ip), Some(get_cfa)) = (walk.get_ip, walk.get_cfa) else { return STOP };
    let mut is_interrupted = 0;
    // SAFETY: the context that this was called with.
    let address = unsafe { get_ip(context, &mut is_interrupted) };
    // SAFETY: as above. At this point of a walk it is where the frame inside ended: behind the return address.
    let place = unsafe { get_cfa(context) }.wrapping_sub(mem::size_of::<usize>());
    if !walk.is_above {
        if place != walk.site.stack as usize {
            return GO_ON;
        }
        walk.is_above = true;
    }
    if address == 0 {
        return STOP;
    }
    let words = place.wrapping_sub(walk.site.stack as usize) / mem::size_of::<usize>();
    let place = match u32::try_from(words) {
        // A frame that a signal interrupted was not called: nothing on the stack says so. What is on another stack may be
        // gone when it is checked again.
        Ok(words) if is_interrupted == 0 && walk.bounds.has(place) => {
            // Elsewhere than on x86-64 it may lie anywhere in the frame: then the stack cannot be recognised.
            walk.trace.is_for_now |= word_at(place) != address;
            words
        }
        _ => 0,
    };
    // Readers take an address for that behind a call.
    let address = address + usize::from(is_interrupted != 0);
    if walk.trace.push(address, place) {
        GO_ON
    } else {
        STOP
    }
}

/// What lies at a place of this thread's stack.
fn word_at(place: usize) -> usize {
    // SAFETY: the caller has looked whether it lies there; aligned.
    unsafe { (place as *const usize).read_volatile() }
}

/// The farthest that the next frame may be, bytes.
const FARTHEST: usize = 1 << 20;

/// Follows the chain of frame pointers, as far as it looks like one: upwards, aligned, not too far. Junk can look like one;
/// so the kernel does the reading, which answers an error where there is no memory.
fn follow_frames(site: Site, bounds: Bounds, trace: &mut Trace) {
    let mut below = site.stack as usize;
    let mut frame = site.frame as usize;
    while frame > below && frame - below < FARTHEST && frame % 16 == 0 {
        let mut words = [0; 2];
        if !raw::read_memory(frame, &mut words) {
            return;
        }
        let [next, address] = words;
        // What is on another stack may be gone when it is checked again.
        let is_own = bounds != Bounds::UNKNOWN && bounds.has(frame + 8);
        let is_near = frame >> 12 == site.stack as usize >> 12;
        let place = if is_own || is_near { frame + 8 - site.stack as usize } else { 0 };
        if address < 1 << 16 || !trace.push(address, (place / mem::size_of::<usize>()) as u32) {
            return;
        }
        trace.method = Method::FramePointers;
        (below, frame) = (frame, next);
    }
}
