//! Panics of the program: an error like any other, with the exit code of a failure.
//!
//! A panic unwinds the stack, so that guards stop what was started; then the command ends with this error. A
//! panic of another thread is reported at once, and is raised again by the thread that waits for it.
use std::any::Any;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use keepup_error::{Diagnostic, ErrorClass};

thread_local! {
    /// Whether the end of this thread's work is reported by [`guarded`].
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
    /// Place and text of the last panic of this thread.
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A defect of the program.
#[derive(Debug, thiserror::Error)]
#[error("cannot run keepup {verb}: the program failed {what}")]
pub(crate) struct InternalError {
    verb: String,
    what: String,
}

impl InternalError {
    /// Error of the command `verb` after a panic of this thread with `text`.
    pub(crate) fn after_panic(verb: &str, text: &str) -> Self {
        let last = LAST.take().map(|place| format!("at {place}"));
        Self { verb: verb.to_owned(), what: last.unwrap_or_else(|| format!("in a thread: {text}")) }
    }
}

impl Diagnostic for InternalError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Failed
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        Some("report this as a defect of keepup, with the messages above and `keepup --version`".into())
    }
}

/// Reports panics in one line with `log`, unless a backtrace is asked for.
pub(crate) fn install_hook(log: fn(&str)) {
    let with_backtrace = take_hook();
    set_hook(Box::new(move |panic| {
        let place = panic.location().map(|place| format!("{}:{}: ", place.file(), place.line()));
        let what = place.unwrap_or_default() + &text_of(panic.payload());
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            with_backtrace(panic);
        } else if !IS_GUARDED.get() {
            let thread = std::thread::current();
            log(&format!("error: internal error: thread {} at {what}", thread.name().unwrap_or("unnamed")));
        }
        LAST.set(Some(what));
    }));
}

/// Runs the command `verb`; a panic becomes an error.
pub(crate) fn guarded<T>(verb: &str, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let was_guarded = IS_GUARDED.replace(true);
    // Nothing that the command used is used afterwards.
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(was_guarded);
    done.unwrap_or_else(|panic| Err(InternalError::after_panic(verb, &text_of(panic.as_ref())).into()))
}

fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it panicked").replace(char::is_control, " ")
}

#[cfg(test)]
#[path = "internal_error_tests.rs"]
mod tests;
