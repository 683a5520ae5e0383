//! Block pool: one mapping of a fixed size from which blocks are lent. Memory is bounded by
//! configuration for any number of streams.
//!
//! Invariants: a grain belongs to at most one [`Block`]; a block is contiguous; only the [`Pool`] that lent
//! a block takes it back; the mapping lives as long as any block of it.
mod grains;
mod growth;
mod registration;

use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use keepup_error::Cause;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use self::grains::Grains;
use self::growth::Growth;
use self::registration::Registration;
use crate::SysError;
use crate::thread::pin_current;

/// Allocation unit, in bytes.
pub const GRAIN_BYTES: usize = 16 << 10;
/// Largest registered buffer that the kernel accepts; a block never crosses such a boundary.
pub const REGION_BYTES: usize = 1 << 30;
/// Each thread's part of a pool is a multiple of this, in bytes.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Page kind of the pool's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// Huge pages reserved by the administrator.
    Huge,
    /// Transparent huge pages, as far as the kernel had any.
    TransparentHuge,
    /// Plain pages.
    Plain,
}

impl std::fmt::Display for PageKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Huge => "huge pages",
            Self::TransparentHuge => "transparent huge pages",
            Self::Plain => "plain pages",
        })
    }
}

impl PageKind {
    /// Cost of this page kind, and the command that changes it; `None` for huge pages.
    pub fn note(self) -> Option<Cause> {
        match self {
            Self::Huge | Self::TransparentHuge => None,
            Self::Plain => Some(Cause::new(PLAIN_NOTE).with_hint(PLAIN_HINT)),
        }
    }
}

const PLAIN_NOTE: &str = "the block pool lies in plain pages, not in huge ones: a tenth more CPU per GB";
const PLAIN_HINT: &str = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, \
    or reserve huge pages (2 MiB each): sysctl vm.nr_hugepages=256";

#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
    /// Known once its first pages exist.
    kind: OnceLock<PageKind>,
    /// Which of its parts of the size of a huge page have pages.
    populated: Box<[AtomicBool]>,
    registration: Registration,
}

// SAFETY: the mapping is plain memory; `Block` gives access to its parts, each part to one owner.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared `Mapping` only gives out its address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory without pages: they come with [`Mapping::populate`], or at the first use.
    fn new(bytes: usize) -> Result<Self, SysError> {
        let mapping = Self::map(bytes)?;
        // After a fork the kernel would copy pages that are written to, and a write in flight
        // could use the wrong copy. Kernels that refuse the advice behave as before. SAFETY: the
        // range is our own mapping; the advice changes no contents.
        let _ = unsafe { madvise(mapping.base.as_ptr().cast(), bytes, Advice::LinuxDontFork) };
        Ok(mapping)
    }

    fn at(base: NonNull<u8>, bytes: usize, kind: OnceLock<PageKind>) -> Self {
        let populated = (0..bytes.div_ceil(HUGE_PAGE_BYTES)).map(|_| AtomicBool::new(false)).collect();
        Self { base, bytes, kind, populated, registration: Registration::default() }
    }

    /// Registers the memory with a ring that keeps it alive as long as the ring exists.
    ///
    /// # Errors
    /// As `io_uring_register(2)`.
    pub(crate) fn register(&self, ring: &io_uring::Submitter<'_>) -> std::io::Result<()> {
        let buffers: Vec<libc::iovec> = (self.regions())
            .map(|(base, bytes)| libc::iovec { iov_base: base.cast(), iov_len: bytes })
            .collect();
        // SAFETY: the regions are this mapping, the same in every call; the caller keeps it for its ring, and
        // the registration ends with it.
        unsafe { self.registration.register(ring, &buffers) }
    }

    fn map(bytes: usize) -> Result<Self, SysError> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address chosen by the kernel aliases nothing.
        let huge = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE | MapFlags::HUGETLB)
        };
        if let Some(base) = huge.ok().and_then(|p| NonNull::new(p.cast())) {
            return Ok(Self::at(base, bytes, OnceLock::from(PageKind::Huge)));
        }
        // SAFETY: as above.
        let plain = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE) }
            .map_err(|e| SysError::Map { bytes, source: e.into() })?;
        let Some(base) = NonNull::new(plain.cast::<u8>()) else {
            return Err(SysError::Map { bytes, source: std::io::Error::other("mapped at address zero") });
        };
        // SAFETY: the range is the mapping just made; the advice changes no contents.
        let advised = unsafe { madvise(base.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
        let kind = if advised.is_ok() { OnceLock::new() } else { OnceLock::from(PageKind::Plain) };
        Ok(Self::at(base, bytes, kind))
    }

    pub(crate) fn kind(&self) -> PageKind {
        *self.kind.get_or_init(|| {
            // The kernel accepts the advice even without effect, so the actual page kind is checked.
            let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
            let share = huge_share(&smaps, self.base.as_ptr().addr());
            if share.is_none_or(|share| share >= 0.5) { PageKind::TransparentHuge } else { PageKind::Plain }
        })
    }

    /// Allocates those pages of a range that do not exist, so that the data path does not wait for page
    /// faults. They come from the calling thread's NUMA node.
    fn populate(&self, range: Range<usize>) -> Result<(), SysError> {
        for start in range.step_by(HUGE_PAGE_BYTES) {
            let Some(is_populated) = self.populated.get(start / HUGE_PAGE_BYTES) else { break };
            if is_populated.load(Relaxed) {
                continue;
            }
            let bytes = HUGE_PAGE_BYTES.min(self.bytes - start);
            // SAFETY: the range lies inside our own mapping; populating changes no contents.
            let answer =
                unsafe { madvise(self.base.as_ptr().add(start).cast(), bytes, Advice::LinuxPopulateWrite) };
            match answer {
                // Kernels before 5.14 do not support the advice: pages are allocated on first use.
                Ok(()) | Err(rustix::io::Errno::INVAL) => is_populated.store(true, Relaxed),
                Err(e) => return Err(SysError::Map { bytes, source: e.into() }),
            }
        }
        Ok(())
    }

    /// Gives a range its pages by writing to each of them, unless they exist.
    ///
    /// # Safety
    /// No block of the range exists.
    unsafe fn touch(&self, range: Range<usize>) {
        for start in range.step_by(HUGE_PAGE_BYTES) {
            let Some(is_populated) = self.populated.get(start / HUGE_PAGE_BYTES) else { break };
            if is_populated.swap(true, Relaxed) {
                continue;
            }
            for page in (start..self.bytes.min(start + HUGE_PAGE_BYTES)).step_by(crate::PAGE_BYTES) {
                // SAFETY: `page` lies inside the mapping, and nobody else has this memory.
                unsafe { self.base.as_ptr().add(page).write_volatile(0) };
            }
        }
    }

    /// Whether all pages of a range exist.
    fn is_populated(&self, range: Range<usize>) -> bool {
        let chunks = range.start / HUGE_PAGE_BYTES..range.end.div_ceil(HUGE_PAGE_BYTES);
        self.populated[chunks].iter().all(|is_populated| is_populated.load(Relaxed))
    }

    fn regions(&self) -> impl Iterator<Item = (*mut u8, usize)> + '_ {
        (0..self.bytes).step_by(REGION_BYTES).map(|start| {
            // SAFETY: `start` is below the mapping's length.
            (unsafe { self.base.as_ptr().add(start) }, REGION_BYTES.min(self.bytes - start))
        })
    }
}

/// Share of the existing pages of the mapping at `address` that are transparent huge pages, from the text of
/// /proc/self/smaps.
fn huge_share(smaps: &str, address: usize) -> Option<f64> {
    let (mut inside, mut pages_kib) = (false, None);
    for line in smaps.lines() {
        let mut words = line.split_ascii_whitespace();
        let first = words.next()?;
        if let Some((from, to)) = first.split_once('-') {
            let (from, to) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16));
            inside = matches!((from, to), (Ok(from), Ok(to)) if (from..to).contains(&address));
        } else if inside && first == "Rss:" {
            pages_kib = words.next()?.parse::<f64>().ok().filter(|&size| size > 0.0);
        } else if inside && first == "AnonHugePages:" {
            return Some(words.next()?.parse::<f64>().ok()? / pages_kib?);
        }
    }
    None
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: no block exists any more: each holds a reference to this mapping.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

/// A pool's reference to its memory, which its blocks count. Every pool has its own, in a cache line of its
/// own: threads with a pool each write no common memory when they take blocks.
#[derive(Debug)]
#[repr(align(128))]
struct Part {
    mapping: Arc<Mapping>,
}

impl Part {
    fn new(mapping: Arc<Mapping>) -> Arc<Self> {
        Arc::new(Self { mapping })
    }
}

impl Deref for Part {
    type Target = Mapping;
    fn deref(&self) -> &Mapping {
        &self.mapping
    }
}

/// A contiguous piece of the pool with one owner; its address is a multiple of 4096.
///
/// A block that is dropped instead of returned stays allocated until the pool is freed.
#[derive(Debug)]
pub struct Block {
    part: Arc<Part>,
    start: usize,
    bytes: usize,
}

impl Block {
    /// Index of the registered buffer that holds this block.
    pub(crate) fn region(&self) -> u16 {
        // A pool has at most 65,535 regions (checked by `Pool::new`).
        (self.start / REGION_BYTES) as u16
    }

    /// Whether it lies in `memory`.
    pub(crate) fn is_in(&self, memory: &PoolMemory) -> bool {
        Arc::ptr_eq(&self.part.mapping, &memory.mapping)
    }

    pub(crate) fn pointer(&self) -> *const u8 {
        // SAFETY: `start` lies inside the mapping.
        unsafe { self.part.base.as_ptr().add(self.start) }
    }
}

impl Deref for Block {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: the range lies inside the mapping, is initialised (zero pages) and belongs to this block
        // alone.
        unsafe { std::slice::from_raw_parts(self.pointer(), self.bytes) }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.part.base.as_ptr().add(self.start), self.bytes) }
    }
}

/// Handle of the pool's memory for registering it with io_uring.
#[derive(Clone, Debug)]
pub struct PoolMemory {
    pub(crate) mapping: Arc<Mapping>,
}

impl PoolMemory {
    /// Size of the pool in bytes.
    pub fn bytes(&self) -> usize {
        self.mapping.bytes
    }
}

/// Allocator of blocks; owned by one thread, so it needs no lock.
#[derive(Debug)]
pub struct Pool {
    part: Arc<Part>,
    grains: Grains,
    /// End of the highest block so far, in whole huge pages; in bytes from its start.
    reached: usize,
    /// Bytes from its start that it may lend.
    given: usize,
    /// The thread that gives it the others, if there were any.
    growth: Option<Growth>,
}

impl Pool {
    /// Maps a pool of at least `bytes` (rounded up to huge pages).
    pub fn new(bytes: usize) -> Result<Self, SysError> {
        let pool = Self::of(Arc::new(Mapping::new(Self::rounded(bytes)?)?));
        pool.populate(usize::MAX)?;
        Ok(pool)
    }

    /// Its part of the mapping, in bytes.
    fn range(&self) -> Range<usize> {
        let grains = self.grains.range();
        grains.start * GRAIN_BYTES..grains.end * GRAIN_BYTES
    }

    /// Allocates its first `bytes` of pages, on the calling thread's NUMA node.
    fn populate(&self, bytes: usize) -> Result<(), SysError> {
        let range = self.range();
        self.part.populate(range.start..range.end.min(range.start.saturating_add(bytes)))
    }

    /// Lets a thread on `cpus` give it the rest of its pages, some time before they are needed.
    fn grow(&mut self, cpus: &[usize]) -> Result<(), SysError> {
        if self.part.is_populated(self.range()) {
            return Ok(());
        }
        self.given = self.bytes().min(growth::FIRST_BYTES);
        self.grains.withhold(self.given / GRAIN_BYTES);
        let mapping = Arc::clone(&self.part.mapping);
        self.growth = Some(Growth::start(mapping, self.range(), self.given, cpus.to_vec())?);
        Ok(())
    }

    fn rounded(bytes: usize) -> Result<usize, SysError> {
        let rounded = bytes.max(HUGE_PAGE_BYTES).next_multiple_of(HUGE_PAGE_BYTES);
        if rounded / REGION_BYTES > usize::from(u16::MAX) {
            return Err(SysError::Invalid {
                what: format!("a pool of {bytes} bytes is beyond what a ring can register"),
            });
        }
        Ok(rounded)
    }

    /// An empty pool. No block of this mapping exists.
    fn of(mapping: Arc<Mapping>) -> Self {
        let grains = Grains::new(0..mapping.bytes / GRAIN_BYTES, REGION_BYTES / GRAIN_BYTES);
        let given = mapping.bytes;
        Self { part: Part::new(mapping), grains, reached: 0, given, growth: None }
    }

    /// Divides an empty pool into `parts` pools of equal size (rounded down to huge pages) for as many
    /// threads. They share the memory and its registration with io_uring, but no state.
    ///
    /// # Errors
    /// The pool has less than one huge page for each part.
    fn split(self, parts: usize) -> Result<Vec<Self>, SysError> {
        debug_assert_eq!(self.bytes_free(), self.bytes(), "a pool that has lent blocks cannot be divided");
        let part_bytes = self.bytes() / parts.max(1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        if part_bytes == 0 {
            let what = format!("a pool of {} bytes cannot be divided into {parts} parts", self.bytes());
            return Err(SysError::Invalid { what });
        }
        let grains = part_bytes / GRAIN_BYTES;
        let part = |index| Self {
            part: Part::new(Arc::clone(&self.part.mapping)),
            grains: Grains::new(index * grains..(index + 1) * grains, REGION_BYTES / GRAIN_BYTES),
            reached: 0,
            given: part_bytes,
            growth: None,
        };
        Ok((0..parts).map(part).collect())
    }

    /// Page kind of the memory.
    pub fn page_kind(&self) -> PageKind {
        self.part.kind()
    }

    /// Size of the whole pool in bytes.
    pub fn bytes(&self) -> usize {
        self.grains.count() * GRAIN_BYTES
    }

    /// Free bytes.
    pub fn bytes_free(&self) -> usize {
        self.grains.free() * GRAIN_BYTES + self.bytes() - self.given
    }

    /// Bytes from its start that have pages: as long as no more is lent, nobody waits for one.
    pub fn populated_bytes(&self) -> usize {
        self.growth.as_ref().map_or(self.given, Growth::given)
    }

    /// Largest block that an empty pool can lend.
    pub fn block_bytes_max(&self) -> usize {
        self.bytes().min(REGION_BYTES)
    }

    /// Handle of the whole mapping for registration with io_uring.
    pub fn memory(&self) -> PoolMemory {
        PoolMemory { mapping: Arc::clone(&self.part.mapping) }
    }

    /// Lends a block of at least `bytes`, or `None` without enough contiguous space.
    ///
    /// Uses the lowest free space: the memory in use stays small and in the processor's cache, as
    /// long as blocks return soon.
    pub fn take(&mut self, bytes: usize) -> Option<Block> {
        let want = bytes.max(1).div_ceil(GRAIN_BYTES);
        let start = match self.grains.take(want) {
            Some(start) => start,
            None => self.take_new(want)?,
        };
        let end = (start + want - self.grains.range().start) * GRAIN_BYTES;
        if end > self.reached {
            self.reached = end.next_multiple_of(HUGE_PAGE_BYTES);
            if let Some(growth) = &self.growth {
                growth.reached(self.reached);
            }
        }
        Some(Block { part: Arc::clone(&self.part), start: start * GRAIN_BYTES, bytes: want * GRAIN_BYTES })
    }

    /// Takes a run of grains with the help of memory that was never lent.
    fn take_new(&mut self, want: usize) -> Option<usize> {
        let growth = self.growth.as_ref()?;
        let end = self.grains.count() * GRAIN_BYTES;
        while self.given < end {
            let given = growth.more(self.given, want * GRAIN_BYTES, end);
            let first = self.grains.range().start + self.given / GRAIN_BYTES;
            self.grains.give_back(first, (given - self.given) / GRAIN_BYTES);
            self.given = given;
            if let Some(start) = self.grains.take(want) {
                return Some(start);
            }
        }
        None
    }

    /// Takes a block back. A block of another pool is refused and dropped (a bug of the caller).
    pub fn give_back(&mut self, block: Block) {
        let (start, count) = (block.start / GRAIN_BYTES, block.bytes / GRAIN_BYTES);
        let is_own = Arc::ptr_eq(&self.part, &block.part) && self.grains.has(start, count);
        debug_assert!(is_own, "block of another pool");
        if is_own {
            self.grains.give_back(start, count);
        }
    }
}

/// When a pool gets its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// Some time before they are needed: a recording that needs few gets few.
    #[default]
    AsNeeded,
    /// All before it is used: a measurement must not contain their cost.
    AtOnce,
}

/// Memory for pools that follow one another: a pool takes the memory of one that has ended, and so needs no
/// new pages (measured: 0.8 to 1.3 s for the first 512 MiB of a virtual machine, 0.06 to 0.6 s later). All
/// clones share it.
#[derive(Clone, Debug, Default)]
pub struct ReusableMemory {
    kept: Arc<Mutex<Vec<Arc<Mapping>>>>,
}

impl ReusableMemory {
    /// Empty pools of equal size for as many threads as there are entries in `cpus`, `bytes` together, in
    /// kept memory of this size that no pool, block or ring uses any more. Without any, unused memory of
    /// other sizes is freed. Each pool gets its pages from a thread on its `cpus` (any when empty): the first
    /// ones before this returns, the others while the pool is used; all before, if `pages` says so or there
    /// are no huge pages.
    ///
    /// # Errors
    /// As [`Pool::new`]; a pool has less than one huge page, or the thread cannot run on its CPUs.
    pub fn pools(&self, bytes: usize, cpus: &[Vec<usize>], pages: Pages) -> Result<Vec<Pool>, SysError> {
        let (pool, is_new) = self.empty_pool(bytes)?;
        let mapping = Arc::clone(&pool.part.mapping);
        let mut pools = pool.split(cpus.len())?;
        populate(&pools, cpus, growth::FIRST_BYTES)?;
        if pages == Pages::AtOnce || mapping.kind() == PageKind::Plain {
            populate(&pools, cpus, usize::MAX)?;
        }
        pools.iter_mut().zip(cpus).try_for_each(|(pool, cpus)| pool.grow(cpus))?;
        if is_new {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(mapping);
        }
        Ok(pools)
    }

    /// A pool, and whether its memory was just made and has no pages.
    fn empty_pool(&self, bytes: usize) -> Result<(Pool, bool), SysError> {
        let rounded = Pool::rounded(bytes)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_unused = |mapping: &mut Arc<Mapping>| Arc::get_mut(mapping).is_some();
        let fits = |mapping: &mut Arc<Mapping>| is_unused(mapping) && mapping.bytes == rounded;
        let found = kept.iter_mut().position(fits).map(|index| Arc::clone(&kept[index]));
        if let Some(mapping) = found {
            return Ok((Pool::of(mapping), false));
        }
        kept.retain_mut(|mapping| !is_unused(mapping));
        Ok((Pool::of(Arc::new(Mapping::new(rounded)?)), true))
    }
}

/// Gives each pool its first `bytes` of pages, from a thread on its CPUs.
fn populate(pools: &[Pool], cpus: &[Vec<usize>], bytes: usize) -> Result<(), SysError> {
    if let ([pool], [cpus]) = (pools, cpus)
        && cpus.is_empty()
    {
        return pool.populate(bytes);
    }
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (pool, cpus) in pools.iter().zip(cpus) {
            let populate = move || pin_current(cpus).and_then(|()| pool.populate(bytes));
            let thread = std::thread::Builder::new().spawn_scoped(scope, populate);
            threads.push(thread.map_err(|source| SysError::Call { action: "start a thread", source })?);
        }
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
