// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.store.FileCache;
import dev.gantry.core.internal.store.PosixFile;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.Descriptors;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.Residency;
import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.List;
import java.util.Optional;

/// A remote file that the cache has as a whole: a local file with the identity of the remote one.
///
/// @param past reads from the remote file what the disk fails to read
/// @param leave ends this use of the cached file; until then, the file is not removed
record WholeFile(
    PosixFile file,
    Object identity,
    String version,
    Optional<Instant> modified,
    PastReads past,
    Runnable leave)
    implements LocalFile, FileCache.OnDisk {
  @Override
  public long size() {
    return file.size();
  }

  @Override
  public SourceFile.Identity onDisk() {
    return file.identity();
  }

  @Override
  public Descriptors descriptors() {
    return file.descriptors();
  }

  @Override
  public Residency residency(long offset, long length) {
    return file.residency(offset, length);
  }

  @Override
  public long residentBytes() {
    return file.residentBytes();
  }

  @Override
  public boolean inMemory() {
    return file.inMemory();
  }

  @Override
  public boolean read(MemorySegment target, long offset, long required, boolean direct) {
    try {
      return file.read(target, offset, required, direct);
    } catch (TransferException e) {
      past.read(target, offset, required, e);
      return false;
    }
  }

  @Override
  public void close() {
    Cleanup.runAll(List.of(file::close, past::close, leave));
  }
}
