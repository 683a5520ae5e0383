//! One pass, in one thread: issues due requests to a target and keeps the account.
mod account;
mod nap;

use std::sync::atomic::Ordering;
use std::time::Duration;

use keepup_workload::Context;

pub(crate) use account::Account;

use self::nap::Nap;
use crate::backend::{Done, Target};
use crate::error::ReplayError;
use crate::pace::{Next, Pace};
use crate::script::Script;

/// Longest wait between checks of the stop flag.
const LOOK: Duration = Duration::from_millis(100);

/// An in-flight request; times in ns since the start of the pass.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    index: usize,
    /// Sequence number of issue.
    order: u64,
    due_ns: u64,
    begun_ns: u64,
}

/// A running pass.
pub(crate) struct Pass<'a> {
    script: &'a Script,
    pace: Box<dyn Pace + 'a>,
    target: &'a mut dyn Target,
    context: &'a Context,
    begin_ns: u64,
    in_flight: Vec<InFlight>,
    free: Vec<usize>,
    /// A due request that waits for a free slot.
    held: Option<(usize, u64)>,
    done: Vec<Done>,
    nap: Nap,
    account: Account,
}

impl<'a> Pass<'a> {
    /// A pass of `script` to `target` with at most `limit` in-flight requests.
    pub(crate) fn new(
        script: &'a Script,
        pace: Box<dyn Pace + 'a>,
        target: &'a mut dyn Target,
        limit: usize,
        context: &'a Context,
    ) -> Self {
        Self {
            script,
            pace,
            target,
            context,
            begin_ns: context.clock.now_ns(),
            in_flight: vec![InFlight::default(); limit],
            free: (0..limit).rev().collect(),
            held: None,
            done: Vec::with_capacity(limit),
            nap: Nap::default(),
            account: Account::new(script.parts.len()),
        }
    }

    /// Runs to the end, or until stopped; waits for in-flight requests.
    pub(crate) fn run(mut self) -> Result<Account, ReplayError> {
        self.begin_ns = self.context.clock.now_ns();
        let mut is_over = false;
        while !is_over {
            is_over = self.context.stop.load(Ordering::Acquire);
            if !is_over {
                match self.start_all()? {
                    Next::Over => is_over = true,
                    Next::At(due_ns) => self.wait_until(due_ns)?,
                    _ => self.wait(LOOK)?,
                }
            }
        }
        while self.account.in_flight() > 0 {
            self.wait(LOOK)?;
        }
        Ok(self.account)
    }

    fn now_ns(&self) -> u64 {
        self.context.clock.now_ns() - self.begin_ns
    }

    /// Issues all due requests while slots are free, and returns what to wait for.
    fn start_all(&mut self) -> Result<Next, ReplayError> {
        loop {
            let now_ns = self.now_ns();
            let held = self.held.take();
            let (index, due_ns) = match held {
                Some(held) => held,
                None => match self.pace.next(now_ns, self.account.in_flight()) {
                    Next::Due(index, due_ns) => (index, due_ns),
                    next => return Ok(next),
                },
            };
            let record = &self.script.records[index];
            let is_started = match self.free.last() {
                Some(&token) if self.target.start(record, index, token)? => {
                    self.free.pop();
                    let order = self.account.begun(due_ns, now_ns);
                    self.in_flight[token] = InFlight { index, order, due_ns, begun_ns: now_ns };
                    true
                }
                _ => false,
            };
            if !is_started {
                self.account.blocked(held.is_none());
                self.held = Some((index, due_ns));
                return Ok(Next::Ended);
            }
        }
    }

    /// Waits for a completion or until `due_ns`, to the microsecond.
    fn wait_until(&mut self, due_ns: u64) -> Result<(), ReplayError> {
        let now_ns = self.now_ns();
        let timeout = self.nap.sleep_ns(due_ns.saturating_sub(now_ns)).min(LOOK.as_nanos() as u64);
        self.wait(Duration::from_nanos(timeout))?;
        if timeout > 0 && self.done.is_empty() {
            self.nap.slept(timeout, self.now_ns().saturating_sub(now_ns));
        }
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Result<(), ReplayError> {
        self.done.clear();
        self.target.wait(timeout, &mut self.done)?;
        if self.done.is_empty() {
            return Ok(());
        }
        let now_ns = self.now_ns();
        for Done { token, result } in &self.done {
            let InFlight { index, order, due_ns, begun_ns } = self.in_flight[*token];
            self.free.push(*token);
            let record = &self.script.records[index];
            self.account.ended(record, order, (due_ns, begun_ns, now_ns), result);
            self.pace.ended(index, now_ns);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
