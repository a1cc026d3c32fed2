//! The fence that ends the restartable steps of all other threads: see [`restart`](super::restart).

use super::world::world;

pub(super) fn fence() {
    let world = world();
    if !world.config.restartable || std::thread::panicking() {
        return;
    }
    let me = world.local(|local| local.token) as usize - 1;
    for (index, step) in world.steps.iter().enumerate() {
        if index != me {
            drop(step.lock().expect("no step panics"));
        }
    }
}
