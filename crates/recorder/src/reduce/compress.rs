//! Lossless compression with bitshuffle and LZ4, as HDF5's filter 32008 stores a chunk.
use keepup_stream::bslz4::Compressor;

use super::Kernel;

impl Kernel for Compressor {
    fn run(&mut self, event: &[u8], output: &mut [u8]) -> Option<usize> {
        self.compress(event, output)
    }
}
