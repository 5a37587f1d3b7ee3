//! Signals of this process as something a poll loop can wait for.

use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Caught signals. While the value lives they no longer end the process by themselves.
#[derive(Debug)]
pub(crate) struct Signals {
    bell: UnixStream,
    caught: Vec<(i32, Arc<AtomicBool>)>,
    registered: Vec<signal_hook::SigId>,
}

impl AsFd for Signals {
    /// Readable once a signal came.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Signals {
    /// Catches these signals.
    ///
    /// # Errors
    /// When the kernel refuses a handler or a socket pair.
    pub(crate) fn catch(numbers: &[i32]) -> std::io::Result<Self> {
        let (bell, rope) = UnixStream::pair()?;
        let mut signals = Self {
            bell,
            caught: Vec::new(),
            registered: Vec::new(),
        };
        for number in numbers {
            let flag = Arc::new(AtomicBool::new(false));
            // In this order: when the bell rings, the flag is up.
            let raise = signal_hook::flag::register(*number, Arc::clone(&flag))?;
            let ring = signal_hook::low_level::pipe::register(*number, rope.try_clone()?)?;
            signals.registered.extend([raise, ring]);
            signals.caught.push((*number, flag));
        }
        Ok(signals)
    }

    /// The signals that came since the last call.
    pub(crate) fn take(&self) -> Vec<i32> {
        // Silenced first: a signal in between rings once for nothing, the other way round it would
        // not be heard.
        let mut rings = [0; 64];
        while let Ok((1.., _)) | Err(Errno::INTR) =
            rustix::net::recv(&self.bell, &mut rings, RecvFlags::DONTWAIT)
        {}
        let came = self
            .caught
            .iter()
            .filter(|(_, flag)| flag.swap(false, Ordering::SeqCst));
        came.map(|(number, _)| *number).collect()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::wire::wait_for;
    use rustix::event::PollFlags;
    use rustix::process::{Signal, getpid, kill_process};
    use std::time::{Duration, Instant};

    #[test]
    fn a_signal_rings_once_and_is_told_by_number() {
        let number = Signal::USR1.as_raw();
        let signals = Signals::catch(&[number, Signal::USR2.as_raw()]).unwrap();
        assert_eq!(signals.take(), Vec::<i32>::new());
        kill_process(getpid(), Signal::USR1).unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        assert!(wait_for(&signals, PollFlags::IN, Some(deadline)).unwrap());
        assert_eq!(signals.take(), vec![number]);
        assert_eq!(signals.take(), Vec::<i32>::new());
    }
}
