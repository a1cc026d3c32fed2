//! Continues the code that a signal handler interrupted, as if the handler had returned, while the handler is
//! still in a call.
//!
//! The unwinder finds the frame: libgcc's, which glibc loads for `pthread_exit` anyway. The frames above it
//! on the stack are lost, so none of them may have something to clean up.

use core::ffi::{c_int, c_void, CStr};
use core::mem;

use libc::ucontext_t;

use crate::raw;
use crate::symbol::Library;

type Context = c_void;
type Step = unsafe extern "C" fn(*mut Context, *mut c_void) -> c_int;
type Backtrace = unsafe extern "C" fn(Step, *mut c_void) -> c_int;
type Get = unsafe extern "C" fn(*mut Context) -> usize;
type GetInstruction = unsafe extern "C" fn(*mut Context, *mut c_int) -> usize;

const GO_ON: c_int = 0; // _URC_NO_REASON
const STOP: c_int = 4; // _URC_NORMAL_STOP

/// The functions of the unwinder that this module uses.
struct Unwinder {
    backtrace: Backtrace,
    stack_pointer: Get,
    instruction: GetInstruction,
    language_data: Get,
}

impl Unwinder {
    fn open() -> Option<Self> {
        let library = Library::open(c"libgcc_s.so.1")?;
        let get = |name: &CStr| {
            // SAFETY: null, or a function of this type: both of those named below are.
            unsafe { mem::transmute::<*mut c_void, Option<Get>>(library.lookup(name)) }
        };
        let backtrace = library.lookup(c"_Unwind_Backtrace");
        let instruction = library.lookup(c"_Unwind_GetIPInfo");
        Some(Self {
            // SAFETY: null, or the function of this name.
            backtrace: unsafe { mem::transmute::<*mut c_void, Option<Backtrace>>(backtrace) }?,
            stack_pointer: get(c"_Unwind_GetCFA")?,
            // SAFETY: null, or the function of this name.
            instruction: unsafe { mem::transmute::<*mut c_void, Option<GetInstruction>>(instruction) }?,
            language_data: get(c"_Unwind_GetLanguageSpecificData")?,
        })
    }
}

/// A walk from the youngest frame to the one that has `of` on its stack.
struct Walk {
    unwinder: Unwinder,
    of: usize,
    /// The last frame's lowest address; 0: there was none.
    from: usize,
    /// The kernel's record of the oldest interruption so far.
    record: usize,
    /// A frame since then may have something to clean up.
    may_clean_up: bool,
    /// One above it may.
    cleans_up: bool,
}

/// One frame. `_Unwind_GetCFA` gives the stack pointer in it: at its call, or where a signal came.
unsafe extern "C" fn step(context: *mut Context, walk: *mut c_void) -> c_int {
    // SAFETY: `go_on` passes its own.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    let mut was_interrupted = 0;
    // SAFETY: the unwinder's context.
    let mut low = unsafe { (walk.unwinder.stack_pointer)(context) };
    // SAFETY: the unwinder's context.
    let instruction = unsafe { (walk.unwinder.instruction)(context, &raw mut was_interrupted) };
    if was_interrupted != 0 {
        // The frame before is the one that the kernel made for the handler's return: its record.
        let stack = if walk.from == 0 { None } else { interrupted(walk.from, instruction, low) };
        walk.record = walk.from;
        walk.cleans_up |= walk.may_clean_up || stack.is_none();
        low = stack.unwrap_or(low);
        walk.may_clean_up = false;
    } else if walk.from != 0 && walk.from <= walk.of && walk.of < low {
        return STOP;
    }
    // SAFETY: the unwinder's context.
    walk.may_clean_up |= unsafe { (walk.unwinder.language_data)(context) } != 0;
    walk.from = low;
    GO_ON
}

/// Where the kernel's record has the interrupted thread's registers.
#[cfg(target_arch = "x86_64")]
const CONTEXT: usize = 0;
/// As on x86-64; the signal's own record comes first.
#[cfg(target_arch = "aarch64")]
const CONTEXT: usize = mem::size_of::<libc::siginfo_t>();

/// The stack pointer of the code that a signal interrupted at `instruction`, if the record at `record` is of that
/// signal. `frame`: where the unwinder has the end of the record's frame.
#[allow(clippy::cast_sign_loss, reason = "registers")]
fn interrupted(record: usize, instruction: usize, frame: usize) -> Option<usize> {
    // SAFETY: on the thread's stack, whose frames are all there, in a frame of the kernel's.
    let context = unsafe { &*((record + CONTEXT) as *const ucontext_t) };
    let registers = &context.uc_mcontext;
    #[cfg(target_arch = "x86_64")]
    let (code, stack, end) = {
        let [code, stack] =
            [libc::REG_RIP, libc::REG_RSP].map(|place| registers.gregs[place as usize] as usize);
        (code, stack, stack)
    };
    // libgcc takes the place of the registers for that end.
    #[cfg(target_arch = "aarch64")]
    let (code, stack, end) =
        (registers.pc as usize, registers.sp as usize, core::ptr::from_ref(registers) as usize);
    ((code, end) == (instruction, frame)).then_some(stack)
}

/// Continues the function that has `of` in its frame, or one that it calls, where a signal interrupted it. If
/// handlers have interrupted each other there, all are given up. The signals that are blocked here remain so.
/// Returns if that place is not found, or if something above it may have cleaning up to do.
///
/// # Safety
///
/// No other code refers to the frames above that place.
#[cold]
#[inline(never)]
pub unsafe fn go_on(of: *const c_void) {
    let Some(unwinder) = Unwinder::open() else { return };
    let backtrace = unwinder.backtrace;
    let of = of as usize;
    let mut walk = Walk { unwinder, of, from: 0, record: 0, may_clean_up: false, cleans_up: false };
    // SAFETY: the walk outlives the call.
    unsafe { backtrace(step, (&raw mut walk).cast()) };
    // A walk may end early, at code that no table describes: a restartable sequence that was interrupted.
    // Then a younger interruption continues, and returns to the older one.
    if walk.cleans_up || walk.record == 0 {
        return;
    }
    let blocked = raw::change_mask(libc::SIG_BLOCK, 0);
    let context = (walk.record + CONTEXT) as *mut ucontext_t;
    // SAFETY: a field of the kernel's record.
    let mask = unsafe { &raw mut (*context).uc_sigmask }.cast::<u64>();
    // SAFETY: the kernel reads one word of signals there.
    unsafe { *mask |= blocked };
    // SAFETY: the kernel's record. The caller vouches for the code that the thread continues with.
    unsafe { sigreturn(walk.record) }
}

/// # Safety
///
/// `record` is the kernel's, for a handler of this thread that has not returned.
#[cfg(target_arch = "x86_64")]
unsafe fn sigreturn(record: usize) -> ! {
    // SAFETY: the same call, with the same stack pointer, as in the function to which a handler returns.
    unsafe {
        core::arch::asm!("mov rsp, {record}", "syscall", record = in(reg) record, in("rax") libc::SYS_rt_sigreturn,
                         options(noreturn));
    }
}

/// # Safety
///
/// As on x86-64.
#[cfg(target_arch = "aarch64")]
unsafe fn sigreturn(record: usize) -> ! {
    // SAFETY: as on x86-64.
    unsafe {
        core::arch::asm!("mov sp, {record}", "svc 0", record = in(reg) record, in("x8") libc::SYS_rt_sigreturn,
                         options(noreturn));
    }
}
