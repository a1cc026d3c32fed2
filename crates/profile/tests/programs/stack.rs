//! Prints a stack of its own, the address of a variable, and its maps.

use std::hint::black_box;

#[link(name = "c")]
unsafe extern "C" {
    fn backtrace(frames: *mut usize, most: i32) -> i32;
}

static CACHE_LOCK: std::sync::Mutex<u32> = std::sync::Mutex::new(1);

#[inline(never)]
fn dump() {
    let mut frames = [0; 8];
    // SAFETY: the array has that length.
    let depth = unsafe { backtrace(frames.as_mut_ptr(), 8) };
    for frame in &frames[..depth as usize] {
        println!("frame {frame:x}");
    }
    println!("lock {:x}", black_box(&raw const CACHE_LOCK).addr());
    print!("{}", std::fs::read_to_string("/proc/self/maps").unwrap());
}

mod store {
    pub struct Cache<T>(pub T);

    impl<T: Copy> Cache<T> {
        #[inline(always)]
        fn locked(&self) {
            super::dump(); // line of locked
        }

        #[inline(never)]
        pub fn update(&self, by: T) {
            self.locked(); // line of update
            std::hint::black_box(by);
        }
    }
}

fn main() {
    black_box(&store::Cache(1_u32)).update(black_box(2));
    black_box(&CACHE_LOCK);
}
