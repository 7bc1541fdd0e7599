// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Location;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;

/// A file mapped as private, copy-on-write memory: the kernel reads a page from disk when it is
/// first touched, and changes never reach the file.
///
/// The file must not shrink while it is mapped: touching a page past its new end is a bus error,
/// which ends the process.
public final class MappedSlab extends CpuSlab {
  private final boolean readOnly;

  private MappedSlab(long address, long size, boolean readOnly) {
    super(address, size, LiveResources.Kind.MAPPED_BYTES, false);
    this.readOnly = readOnly;
  }

  /// Maps `size` bytes of an open file. The descriptor may be closed afterwards.
  ///
  /// @param offset where the bytes begin in the file, a multiple of the page size
  public static MappedSlab map(Location file, int descriptor, long offset, long size) {
    return map(file.toString(), descriptor, offset, size, false);
  }

  /// Maps a memory file that other processes map too. No process may write to the slab's memory; a
  /// write by this process would change a private copy of the page.
  public static MappedSlab readOnly(String name, int descriptor, long size) {
    return map(name, descriptor, 0, size, true);
  }

  private static MappedSlab map(
      String file, int descriptor, long offset, long size, boolean readOnly) {
    checkSize(size);
    int protection = Libc.PROT_READ | Libc.PROT_WRITE;
    int flags = Libc.MAP_PRIVATE | Libc.MAP_NORESERVE;
    String what = file + " offset " + offset + " length " + size;
    return Cleanup.orUndo(
        () ->
            Errno.require(
                Libc.INSTANCE.mmap(size, protection, flags, descriptor, offset), "mmap", what),
        address -> new MappedSlab(address, size, readOnly),
        address -> Libc.INSTANCE.munmap(address, size));
  }

  @Override
  public boolean isReadOnly() {
    return readOnly;
  }

  @Override
  void free() {
    Errno.check(Libc.INSTANCE.munmap(address, size()), "munmap", "a mapped file");
  }
}
