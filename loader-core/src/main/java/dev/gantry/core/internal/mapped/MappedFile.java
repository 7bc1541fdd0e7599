// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.RegisteredPages;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/// A file that is mapped whole and registered with the CUDA driver, so that kernels of every device read
/// it from the page cache. Its pages are pinned until [#close].
///
/// The CPU never reads through the mapping: if the file were truncated, such a read would end the
/// process, whereas a kernel still reads the old bytes (measured on an H200 host).
final class MappedFile implements KeptFile {
  /// How many bytes one call registers. A call takes 2 ms, in which the driver serves no other
  /// thread.
  private static final long PART_BYTES = 64L << 20;

  /// The pause between two such calls, which lets other threads call the driver.
  private static final long PAUSE_NANOS = 100_000;

  private final CudaContext context;
  private final RegisteredPages counted;
  private final SourceFile file;
  private final long address;
  private final long bytes;

  /// The parts that are registered. It has room for all parts before the first is registered, and
  /// so needs no heap afterwards.
  private final ArrayList<CudaDriver.PinnedMemory> registered = new ArrayList<>();

  /// Made with the file, so that closing it needs no heap.
  private final Consumer<CudaDriver.PinnedMemory> unpin;

  private final List<Runnable> closing;

  /// Maps and registers a file. Pages that are not in the page cache are read now.
  ///
  /// @param counted the counter to which the caller has added the file's pages; [#close] subtracts
  ///     them
  /// @param file a local file that is not empty; [#close] closes it. If this throws, the caller closes it
  /// @throws TransferException if the kernel or the driver refuses
  MappedFile(CudaContext context, RegisteredPages counted, FileCalls calls, SourceFile file) {
    this.context = context;
    this.counted = counted;
    this.file = file;
    this.bytes = bytes(calls, file);
    this.unpin = context.driver()::unpin;
    this.closing = List.of(this::unmap, this::discount, file::close);
    Runnable register = this::register;
    Runnable unmap = this::unmap;
    String what = file.file() + " length " + bytes;
    this.address =
        Errno.require(
            Libc.INSTANCE.mmap(bytes, Libc.PROT_READ, Libc.MAP_SHARED, file.mappable(), 0),
            "mmap",
            what);
    Cleanup.orUndo(register, unmap);
    LiveResources.add(LiveResources.Kind.PINNED_BYTES, bytes);
  }

  /// Returns the size of the file in whole pages, in bytes.
  static long bytes(FileCalls calls, SourceFile file) {
    long page = calls.pageBytes();
    return Math.ceilDiv(file.size(), page) * page;
  }

  private void register() {
    List<CudaDriver.PinnedMemory> parts = new ArrayList<>();
    for (long at = 0; at < bytes; at += PART_BYTES) {
      parts.add(new CudaDriver.PinnedMemory(address + at, Math.min(PART_BYTES, bytes - at)));
    }
    registered.ensureCapacity(parts.size());
    try (var _ = context.enter()) {
      for (CudaDriver.PinnedMemory part : parts) {
        context.driver().pinReadOnly(part);
        registered.add(part);
        LockSupport.parkNanos(PAUSE_NANOS);
      }
    }
  }

  /// Unregisters all parts. If the driver fails to unregister one, the others are still
  /// unregistered.
  private void unregister() {
    try (var _ = context.enter()) {
      Cleanup.forEach(registered, unpin);
    }
  }

  @Override
  public Location location() {
    return file.file();
  }

  @Override
  public Object identity() {
    return file.identity();
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public long address(long offset) {
    return address + offset;
  }

  @Override
  public MemorySegment segment() {
    throw new IllegalStateException("only kernels read a mapping");
  }

  @Override
  public void requireUnchanged() {
    file.requireUnchanged();
  }

  /// Unregisters and unmaps the file. If a part stays registered, the whole file stays mapped, so
  /// that no other memory gets the part's addresses.
  private void unmap() {
    unregister();
    Errno.check(Libc.INSTANCE.munmap(address, bytes), "munmap", file.file());
  }

  /// Unregisters, unmaps and closes the file. No kernel may read it any more.
  @Override
  public void close() {
    Cleanup.runAll(closing);
  }

  private void discount() {
    LiveResources.add(LiveResources.Kind.PINNED_BYTES, -bytes);
    counted.add(-bytes);
  }
}
