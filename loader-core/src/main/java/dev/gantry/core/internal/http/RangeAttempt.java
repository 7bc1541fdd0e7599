// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.store.RemoteFault;
import dev.gantry.core.internal.store.RemoteRequest;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.spi.ReadRequest;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.URI;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/// One attempt to read a range. It knows the connection in use and the number of bytes received.
/// The attempt's thread reads straight into the target; any other thread may stop the attempt.
final class RangeAttempt implements RemoteRequest.Attempt {
  private static final long MAX_READ_BYTES = 1 << 30;

  private final ReadRequest request;
  private final URI address;
  private final MemorySegment target;
  private final CompletableFuture<Void> over = new CompletableFuture<>();

  /// Made early, since [#stop] must not need heap.
  private final Cleanup.Wait untilLeft = this::awaitLeft;

  private @Nullable Connection connection;
  private boolean stopped;

  /// Whether the thread may be writing to the target.
  private boolean writing;

  private volatile long progressNanos = System.nanoTime();

  /// @param address the address that is asked first
  RangeAttempt(ReadRequest request, URI address) {
    this.request = request;
    this.address = address;
    this.target = request.target();
  }

  /// The address that is asked first, even if the request asks another one by now.
  URI address() {
    return address;
  }

  /// Returns the time during which fewer than [RetryLimits#LEAST_BYTES] bytes have been received.
  Duration idle() {
    return Duration.ofNanos(System.nanoTime() - progressNanos);
  }

  /// Returns a future that completes when the attempt has ended in any way.
  CompletableFuture<Void> over() {
    return over;
  }

  /// Sets the connection of the next answer, so that [#stop] can close it.
  ///
  /// @throws IOException if the attempt was stopped
  synchronized void uses(Connection next) throws IOException {
    if (stopped) {
      throw stopped();
    }
    connection = next;
  }

  /// Records that the attempt no longer uses its connection.
  synchronized void leaves() {
    connection = null;
  }

  /// Reads an answer's body into the target.
  void fill(Connection from) throws IOException {
    synchronized (this) {
      if (stopped) {
        throw stopped();
      }
      writing = true;
    }
    try {
      read(from);
    } finally {
      synchronized (this) {
        writing = false;
        notifyAll();
      }
    }
  }

  private static IOException stopped() {
    return new IOException("the attempt was stopped");
  }

  private void read(Connection from) throws IOException {
    long size = target.byteSize();
    long noted = 0;
    progressNanos = System.nanoTime();
    for (long received = 0; received < size; ) {
      long most = Math.min(MAX_READ_BYTES, size - received);
      int count = from.read(target.asSlice(received, most).asByteBuffer());
      if (count < 0) {
        throw RemoteFault.passing("the answer ended after " + received + " of " + size + " bytes");
      }
      received += count;
      request.arrived(received);
      if (received - noted >= RetryLimits.LEAST_BYTES || received == size) {
        noted = received;
        progressNanos = System.nanoTime();
      }
    }
    if (from.hasMore()) {
      throw RemoteFault.lasting(0, "the server sent more bytes than it was asked for");
    }
  }

  @Override
  public void stop() {
    Connection used;
    synchronized (this) {
      stopped = true;
      used = connection;
    }
    // Closing the connection makes a reading thread stop writing to the target.
    if (used != null) {
      used.close();
    }
    Cleanup.awaitUninterruptibly(untilLeft);
    over.complete(null);
  }

  private synchronized boolean awaitLeft() throws InterruptedException {
    while (writing) {
      wait();
    }
    return true;
  }
}
