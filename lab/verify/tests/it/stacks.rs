//! Loom's stacks are kept: what makes the models four times as fast is not lost with a new release of
//! `generator`.

use spinpark_verify::{Model, stacks};

#[test]
fn threads_of_models_have_stacks_of_the_arena() {
    Model::new().check(|| {
        let thread = loom::thread::spawn(|| ());
        thread.join().expect("it does not panic");
    });
    let most = stacks::most_at_once();
    assert!((2..1024).contains(&most), "{most} stacks");
}
