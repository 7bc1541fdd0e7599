// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.Cancellation;
import dev.gantry.core.MisuseException;
import dev.gantry.core.ProgressListener;
import dev.gantry.core.Session;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.safetensors.DataFileOptions;

/// The options that all have that write tensors. For one thread.
///
/// @param <T> the builder itself
public abstract sealed class WriterBuilder<T extends WriterBuilder<T>>
    permits CheckpointSaver.Builder, WeightsWriter.Builder {
  GantrySession session = GantrySession.shared();
  DataFileOptions files = DataFileOptions.defaults();
  WriteOptions options = WriteOptions.defaults();

  WriterBuilder() {}

  /// This builder, by its own type.
  abstract T self();

  /// The session that moves the bytes; default: the process's shared one. It must stay open as long
  /// as what this makes.
  public T optSession(Session chosen) {
    session = GantrySession.of(MisuseException.requireGiven("optSession", chosen));
    return self();
  }

  /// The most bytes of tensors in one data file; default: 5 GB. A larger tensor gets a file of its own.
  public T optFileBytes(long bytes) {
    MisuseException.requireRange("optFileBytes", bytes, 1, Long.MAX_VALUE);
    files = files.withFileBytes(bytes);
    return self();
  }

  /// The most bytes of one write, a multiple of 4096, at most 1 GiB; default: 16 MiB. Each writer
  /// thread has two buffers of this size.
  public T optRequestBytes(long bytes) {
    options = options.withRequestBytes(bytes);
    return self();
  }

  /// How many threads write at once; default: 0, which means 4.
  public T optThreads(int threads) {
    options = options.withThreads(threads);
    return self();
  }

  /// The only transport for device memory: for a checkpoint's snapshots on a device, where these are taken. Default:
  /// it is chosen by evidence.
  public T optTransport(Transport chosen) {
    options = options.withTransport(MisuseException.requireGiven("optTransport", chosen));
    return self();
  }

  /// Whether files are written through the page cache; default: only if the file system has no direct
  /// I/O.
  public T optPageCache(boolean chosen) {
    options = options.withPageCache(chosen);
    return self();
  }

  /// Is told how many bytes are written.
  public T optProgress(ProgressListener listener) {
    options = options.withProgress(MisuseException.requireGiven("optProgress", listener));
    return self();
  }

  /// Ends the current write early, and every later one.
  public T optCancellation(Cancellation cancellation) {
    options =
        options.withCancellation(MisuseException.requireGiven("optCancellation", cancellation));
    return self();
  }
}
