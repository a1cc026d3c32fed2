//! Stacks: the caller, its caller, and so on.
//!
//! Unwind tables are certain; frame pointers cannot be distinguished from junk. So the unwinder of `libgcc_s`
//! is asked, which C++ and Rust programs have loaded anyway; it is loaded at the start of the process, since
//! that allocates. With glibc 2.35 or later it finds tables without a lock (`_dl_find_object`); with an older
//! one it takes the loader's, which a thread that waits for this one may hold: there, and without the
//! library, the frame pointers are followed, with bounds.
//!
//! Code that is generated at run time (a JVM's, JavaScript's) and some written in assembly has no tables.
//! Where the unwinder ends there, the chain of frame pointers is followed from the one that it has restored
//! for that frame ([`Unwinder::follow_made_code`]). Functions that use the register for something else are
//! missing then; a JVM keeps frame pointers with `-XX:+PreserveFramePointer`, JavaScript's engines always.
//!
//! A stack that is not the thread's own is not unwound ([`super::stack_bounds`]), nor any while a thread
//! holds the unwinder's own mutex ([`super::unwinder_lock`]), nor that of a call from the unwinder, which is
//! about to lock it: those have their caller only.
//!
//! A capture also notes *where on the stack* each return address lies. Unwinding costs microseconds, checking
//! whether the same addresses still lie in the same places some nanoseconds: so a known stack is recognised
//! ([`Trace::still_holds`]), and one that is not is followed without unwinding if each of its addresses is
//! known ([`super::steps`]).

use core::ffi::{c_char, c_int, c_void, CStr};
use core::mem::{self, MaybeUninit};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

use spinpark_linux::{lookup, raw, Library, Scope};

use super::arch::{self, code_address, ends_in_call};
use super::site::Site;
use super::stack_bounds::Bounds;
use super::unwinder_lock::UnwinderLock;
use super::Recorder;
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
    /// From this one on, a frame pointer lies below each address, and leads to the place of the next.
    pub(crate) by_frame: usize,
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
            by_frame: FRAMES,
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
    /// The places were captured by this thread, for this `stack`: so each is on the thread's own stack, above
    /// it.
    #[inline]
    pub(crate) unsafe fn still_holds(stack: *const usize, frames: &[u64], places: &[u32]) -> bool {
        frames.iter().zip(places).skip(1).all(|(frame, place)| {
            // SAFETY: the caller's promise.
            *place == 0
                || code_address(unsafe { stack.wrapping_add(*place as usize).read_volatile() }) as u64
                    == *frame
        })
    }
}

type Context = c_void;
type Callback = unsafe extern "C" fn(*mut Context, *mut c_void) -> c_int;
type Backtrace = unsafe extern "C" fn(Callback, *mut c_void) -> c_int;
type GetIpInfo = unsafe extern "C" fn(*mut Context, *mut c_int) -> usize;
type GetCfa = unsafe extern "C" fn(*mut Context) -> usize;
type GetRegister = unsafe extern "C" fn(*mut Context, c_int) -> usize;

/// glibc's `struct dl_find_object`: what is at an address.
#[repr(C)]
pub(crate) struct Object {
    flags: u64,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The loader's `struct link_map`.
    link: *const Link,
    rest: [usize; 9],
}

/// The start of glibc's `struct link_map`.
#[repr(C)]
struct Link {
    base: usize,
    name: *const c_char,
}

impl Object {
    /// Its path; none of the program itself.
    ///
    /// # Safety
    ///
    /// The module stays loaded as long as the result is used.
    pub(crate) unsafe fn path<'a>(&self) -> Option<&'a CStr> {
        // SAFETY: null, or the loader's entry of a module that is loaded.
        let name = unsafe { self.link.as_ref() }?.name;
        // SAFETY: null, or the loader's string, which stays with the module.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
        Some(name).filter(|name| !name.is_empty())
    }
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
    get_register: AtomicPtr<c_void>,
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
            get_register: AtomicPtr::new(core::ptr::null_mut()),
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
        self.get_register.store(library.lookup(c"_Unwind_GetGR"), Relaxed);
        let backtrace = library.lookup(c"_Unwind_Backtrace");
        let Some(object) = self.object(backtrace as usize) else { return };
        self.from.store(object.start, Relaxed);
        self.to.store(object.end, Relaxed);
        self.lock.start(object.start);
        self.backtrace.store(backtrace, Relaxed);
    }

    /// The module that has an address, as the loader knows it now.
    pub(crate) fn object(&self, address: usize) -> Option<Object> {
        let find_object = self.find_object.load(Relaxed);
        if find_object.is_null() || address == 0 {
            return None;
        }
        // SAFETY: the function of that name.
        let find_object = unsafe { mem::transmute::<*mut c_void, FindObject>(find_object) };
        let mut object = MaybeUninit::<Object>::zeroed();
        // SAFETY: an address, and a buffer for the answer.
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
    pub(crate) fn capture(&self, site: Site, bounds: Bounds, thread: u32, recorder: &Recorder) -> Trace {
        let is_unwound = !self.backtrace.load(Relaxed).is_null();
        let is_for_now = is_unwound && self.lock.is_held(thread);
        if is_unwound && (is_for_now || self.calls(site) || !bounds.has_room(site)) {
            return Trace { is_for_now, ..Trace::of_caller(site) };
        }
        self.walk(site, bounds, recorder)
    }

    // Not inlined: its caller may have little stack.
    #[inline(never)]
    fn walk(&self, site: Site, bounds: Bounds, recorder: &Recorder) -> Trace {
        let mut walk = Walk {
            site,
            bounds,
            trace: Trace::empty(),
            get_ip: None,
            get_cfa: None,
            get_register: None,
            is_above: false,
            reached: None,
        };
        // SAFETY: null, or the function of that name; `Option<fn>` has null for `None`.
        let backtrace =
            unsafe { mem::transmute::<*mut c_void, Option<Backtrace>>(self.backtrace.load(Relaxed)) };
        // SAFETY: the same.
        walk.get_ip = unsafe { mem::transmute::<*mut c_void, Option<GetIpInfo>>(self.get_ip.load(Relaxed)) };
        // SAFETY: the same.
        walk.get_cfa = unsafe { mem::transmute::<*mut c_void, Option<GetCfa>>(self.get_cfa.load(Relaxed)) };
        let get_register = self.get_register.load(Relaxed);
        // SAFETY: the same.
        walk.get_register = unsafe { mem::transmute::<*mut c_void, Option<GetRegister>>(get_register) };
        if let Some(backtrace) = backtrace {
            // SAFETY: calls `step` with this context, which lives as long.
            unsafe { backtrace(step, core::ptr::addr_of_mut!(walk).cast()) };
        }
        let mut trace = walk.trace;
        if trace.depth > 0 {
            trace.method = Method::Tables;
            if arch::HAS_FRAME_RECORDS {
                trace.by_frame = 0;
            }
            if let Some(from) = walk.reached.filter(|_| bounds != Bounds::UNKNOWN) {
                self.follow_made_code(site, bounds, from, recorder, &mut trace);
            }
            return trace;
        }
        trace.push(site.caller(), 0);
        if self.by_frame.load(Relaxed) != 0 {
            follow_frames(site, bounds, &mut trace);
        }
        trace
    }

    /// Goes on by frame pointers, `from` the place of a return address and the frame pointer of the frame
    /// above it: upwards on the thread's own stack, to return addresses. Those lie behind a call; a JVM's
    /// interpreter pushes others, into made code.
    fn follow_made_code(
        &self,
        site: Site,
        bounds: Bounds,
        from: (usize, usize),
        recorder: &Recorder,
        trace: &mut Trace,
    ) {
        let (mut below, mut frame) = from;
        // What lies above a call on its own stack is there.
        let is_own = |place: usize| bounds.has(place) && place >= site.stack as usize;
        if !is_own(below) {
            return;
        }
        trace.by_frame = trace.by_frame.min(trace.depth);
        let is_called = |address: usize| {
            recorder.is_return_address(address) || recorder.code_before(address).is_some_and(ends_in_call)
        };
        // JavaScript's frames lie at any word.
        while frame > below && frame - below < FARTHEST && is_own(frame) && is_own(frame + 8) {
            let (next, address) = (word_at(frame), code_address(word_at(frame + 8)));
            let is_caller = match self.object(address) {
                Some(_) => is_called(address),
                None => {
                    recorder.is_code(address as u64)
                        || is_called(address)
                        || recorder.is_new_code(address as u64)
                }
            };
            let place = (frame + 8 - site.stack as usize) / mem::size_of::<usize>();
            if !is_caller || !trace.push(address, place as u32) {
                return;
            }
            (below, frame) = (frame, next);
        }
    }
}

struct Walk {
    site: Site,
    bounds: Bounds,
    trace: Trace,
    get_ip: Option<GetIpInfo>,
    get_cfa: Option<GetCfa>,
    get_register: Option<GetRegister>,
    /// The recorder's own frames are behind.
    is_above: bool,
    /// The frame that was reached last: where its return address lies, and its frame pointer. None if the
    /// tables have shown that no other follows.
    reached: Option<(usize, usize)>,
}

unsafe extern "C" fn step(context: *mut Context, walk: *mut c_void) -> c_int {
    // SAFETY: from `capture`, which waits for this.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    let (Some(get_ip), Some(get_cfa)) = (walk.get_ip, walk.get_cfa) else { return STOP };
    let mut is_interrupted = 0;
    // SAFETY: the context that this was called with.
    let address = unsafe { get_ip(context, &mut is_interrupted) };
    // SAFETY: the same. At this point of a walk it is where the frame inside ended.
    let end = unsafe { get_cfa(context) }.wrapping_sub(mem::size_of::<usize>());
    let inner = walk.reached.take();
    let place = match inner {
        _ if walk.is_above => arch::return_place(end, inner.map(|(_, frame)| frame)),
        _ if end == walk.site.stack as usize => end,
        _ => return GO_ON,
    };
    walk.is_above = true;
    if address == 0 {
        return STOP;
    }
    let return_place = place;
    let words = place.wrapping_sub(walk.site.stack as usize) / mem::size_of::<usize>();
    let place = match u32::try_from(words) {
        // A frame that a signal interrupted was not called: nothing on the stack shows it. What is on another
        // stack may be gone when it is checked again.
        Ok(words) if is_interrupted == 0 && walk.bounds.has(place) => {
            // It may lie elsewhere in the frame: then the stack cannot be recognised.
            let is_there = code_address(word_at(place)) == address;
            walk.trace.is_for_now |= !is_there;
            if is_there || !arch::HAS_FRAME_RECORDS {
                words
            } else {
                0
            }
        }
        _ => 0,
    };
    // Readers take an address for that behind a call.
    let address = address + usize::from(is_interrupted != 0);
    if !walk.trace.push(address, place) {
        return STOP;
    }
    if let Some(get_register) = walk.get_register.filter(|_| is_interrupted == 0) {
        // SAFETY: the same context; every frame has this register.
        walk.reached = Some((return_place, unsafe { get_register(context, arch::FRAME_POINTER) }));
    }
    GO_ON
}

/// What lies at a place of this thread's stack.
fn word_at(place: usize) -> usize {
    // SAFETY: the caller has checked whether it lies there; aligned.
    unsafe { (place as *const usize).read_volatile() }
}

/// The farthest that the next frame may be, bytes.
const FARTHEST: usize = 1 << 20;

/// Follows the chain of frame pointers, as far as it looks like one: upwards, aligned, not too far. Junk can
/// look like one; so the kernel does the reading, which answers an error where there is no memory.
fn follow_frames(site: Site, bounds: Bounds, trace: &mut Trace) {
    let mut below = site.stack as usize;
    let mut frame = site.frame as usize;
    while frame > below && frame - below < FARTHEST && frame % 16 == 0 {
        let mut words = [0; 2];
        if !raw::read_memory(frame, &mut words) {
            return;
        }
        let [next, address] = [words[0], code_address(words[1])];
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
