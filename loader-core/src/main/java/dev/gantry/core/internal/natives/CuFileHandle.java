// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import dev.gantry.core.MisuseException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicReference;

/// A file that is registered with cuFile. Close it before its descriptor, when no read or write of it
/// is running; closing twice does nothing. Thread-safe.
public final class CuFileHandle implements AutoCloseable {
  private final CuFile cuFile;
  private final Path file;
  private final int descriptor;
  private final AtomicReference<MemorySegment> opaque;

  CuFileHandle(CuFile cuFile, Path file, int descriptor, MemorySegment opaque) {
    this.cuFile = cuFile;
    this.file = file;
    this.descriptor = descriptor;
    this.opaque = new AtomicReference<>(opaque);
  }

  public Path file() {
    return file;
  }

  /// In bytes, at this moment; 0 if the kernel does not say.
  long fileSize() {
    return Libc.INSTANCE.stat(descriptor).size();
  }

  MemorySegment opaque() {
    MemorySegment handle = opaque.get();
    if (handle.address() == 0) {
      throw new MisuseException("the cuFile handle of " + file + " is closed");
    }
    return handle;
  }

  @Override
  public void close() {
    MemorySegment handle = opaque.getAndSet(MemorySegment.NULL);
    if (handle.address() != 0) {
      cuFile.deregisterHandle(handle);
    }
  }
}
