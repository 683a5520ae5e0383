//! A panic ends a command with an error that names its place.
use super::*;
use crate::exit::{Exit, hint};

#[test]
fn a_panic_of_the_command_is_an_error_with_its_place() {
    install_hook(|_| {});
    let guard = DropGuard::default();
    let is_dropped = std::rc::Rc::clone(&guard.0);
    let line = line!() + 3;
    let error = guarded::<()>("verify", || {
        let _guard = guard;
        panic!("index {} out of\nrange", 7)
    });
    let error = error.unwrap_err();
    let place = format!("at {}:{line}: ", file!());
    let text = error.to_string();
    assert_eq!(text, format!("cannot run keepup verify: the program failed {place}index 7 out of range"));
    assert_eq!(Exit::of(&error), Exit::Failed);
    assert!(hint(&error).unwrap().contains("report this as a defect"));
    assert!(is_dropped.get(), "guards run");
    // A thread that another one waits for.
    let error = guarded::<()>("drain", || {
        let ended = std::thread::scope(|scope| scope.spawn(|| panic!("no block")).join());
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let text = error.unwrap_err().to_string();
    assert_eq!(text, "cannot run keepup drain: the program failed in a thread: no block");
    // Control: errors and results stay as they are.
    assert_eq!(guarded("info", || Ok(Exit::FitWithLimits)).unwrap(), Exit::FitWithLimits);
    let error = guarded::<()>("info", || Err(anyhow::anyhow!("no space"))).unwrap_err();
    assert_eq!((error.to_string().as_str(), Exit::of(&error)), ("no space", Exit::Environment));
}

/// Says when it is dropped.
#[derive(Default)]
struct DropGuard(std::rc::Rc<Cell<bool>>);

impl Drop for DropGuard {
    fn drop(&mut self) {
        self.0.set(true);
    }
}
