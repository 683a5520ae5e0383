//! Call numbers and structure sizes match linux/vfio.h; other files are refused. The rest needs a
//! function behind an IOMMU: `tests/registers/guest_backends.rs`.
use std::os::fd::AsFd;

use super::*;

#[test]
fn numbers_and_sizes_match_the_header() {
    assert_eq!((GET_API_VERSION, GROUP_GET_DEVICE_FD, IOMMU_UNMAP_DMA), (0x3b64, 0x3b6a, 0x3b72));
    assert_eq!((size_of::<GroupStatus>(), size_of::<RegionInfo>()), (8, 32));
    assert_eq!((size_of::<DmaMap>(), size_of::<DmaUnmap>()), (32, 24));
}

#[test]
fn other_files_are_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let why = Container::open(file.path()).unwrap_err();
    assert!(why.raw_os_error() == Some(libc::ENOTTY) && why.to_string().contains("version"), "{why}");
    let group = Group::open(file.path()).unwrap();
    assert_eq!(group.is_viable().unwrap_err().raw_os_error(), Some(libc::ENOTTY));
    let why = group.device("0000:00:04.0").unwrap_err().to_string();
    assert!(why.contains("through its IOMMU group"), "{why}");
    assert!(group.device("\0").is_err());
    assert!(region(file.as_file().as_fd(), 0).is_err());
    let why = Group::open(Path::new("/nowhere/7")).unwrap_err().to_string();
    assert!(why.contains("cannot open /nowhere/7"), "{why}");
}
