//! Containing the panics of message handlers.
//!
//! A panic is a defect of the code that handles a message, and usually recurs with the same message. A panic must not
//! affect the other messages of the batch. Programs that rely on this are built with `panic = "unwind"`.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// The maximum length of a panic message, in characters.
const MAX_CHARS: usize = 500;

/// The code that handled a message panicked. An immediate retry does not help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it panicked: {0}")]
pub struct PanicError(String);

impl PanicError {
    fn with(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self(text.unwrap_or("without a message").chars().take(MAX_CHARS).collect())
    }
}

/// Runs `work`. After a panic, the caller must not use data that `work` has changed.
///
/// # Errors
/// Returns an error if it panics, with the panic's message.
pub fn contain<T>(work: impl FnOnce() -> T) -> Result<T, PanicError> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| PanicError::with(payload.as_ref()))
}

/// Runs a future, which is dropped after a panic.
///
/// # Errors
/// Returns an error if it panics, with the panic's message.
pub async fn contain_async<F: Future>(work: F) -> Result<F::Output, PanicError> {
    let mut work = pin!(work);
    poll_fn(|context| match contain(|| work.as_mut().poll(context)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn panic_becomes_error_with_message() {
        assert_eq!(contain(|| 7), Ok(7));
        let number = 4;
        let formatted = contain(|| {
            if number > 3 {
                panic!("{number} is too many")
            }
        });
        assert_eq!(formatted.unwrap_err().to_string(), "it panicked: 4 is too many");
        let long = contain(|| panic!("{}", "x".repeat(10_000))).unwrap_err();
        assert_eq!(long.to_string().len(), "it panicked: ".len() + MAX_CHARS);
        let odd = contain(|| std::panic::panic_any(7)).unwrap_err();
        assert_eq!(odd.to_string(), "it panicked: without a message");
    }

    #[test]
    fn panicking_future_fails_at_that_poll() {
        let mut polls = 0;
        let work = poll_fn(|_| {
            polls += 1;
            if polls == 2 { panic!("at the second poll") } else { Poll::<()>::Pending }
        });
        let mut contained = pin!(contain_async(work));
        let mut context = Context::from_waker(Waker::noop());
        assert!(contained.as_mut().poll(&mut context).is_pending());
        let Poll::Ready(Err(panicked)) = contained.as_mut().poll(&mut context) else { panic!("no error") };
        assert_eq!(panicked.to_string(), "it panicked: at the second poll");
    }
}
