// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Transport;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.events.TransferCounter;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.PendingReads;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.FileTransport.OpenFile;
import dev.gantry.core.spi.Residency;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The reads of remote files in one load or ring. As many requests are under way at once as the
/// link needs, and the threads that start reads do not wait for the bytes. Bytes for the host
/// arrive in their destination; bytes for a device arrive in pinned buffers and are copied from
/// there. Thread-safe.
final class RemoteReads implements AutoCloseable {
  private final @Nullable RemoteStaging staging;
  private final TransferCounter counter;
  private final HostTransport host;
  private final @Nullable KnownChecksums sums;
  private final PendingReads pending = new PendingReads();

  /// Made with this object, so that closing it needs no heap.
  private final List<Runnable> closing;

  /// @param staged takes reads that are staged; null if nothing is staged
  /// @param sums adds the bytes that arrive to checksums; null if no checksums are wanted
  RemoteReads(
      @Nullable StagedTransport staged, TransferCounter counter, @Nullable KnownChecksums sums) {
    this.staging = staged == null ? null : new RemoteStaging(staged);
    this.counter = counter;
    this.host = new HostTransport(sums);
    this.sums = sums;
    this.closing =
        staging == null
            ? List.of(pending::close, host::close)
            : List.of(pending::close, staging::close, host::close);
  }

  /// Waits until the link needs one more request, and begins the read. Unless this throws, either
  /// `arrived` or `failed` is run once, on any thread.
  ///
  /// @param arrived run when the bytes are in host memory, or their copies to a device are queued: see
  ///     [Target#ordered] and [#drain]. If it throws, the read has failed
  /// @param failed must not throw
  void start(
      OpenFile file, Read read, Target target, Runnable arrived, Consumer<Throwable> failed) {
    SourceFile source = file.source();
    Transport transport = file.transport().of(true);
    TimedEvent event = TimedEvent.begun(EventKind.READ);
    Runnable done =
        () -> {
          account(event, read, transport);
          arrived.run();
        };
    switch (transport) {
      case HOST -> startOnHost(source, read, target, done, failed);
      case STAGED -> stage(source, read, target, done, failed);
      case MAPPED, GDS, COMPAT ->
          throw new IllegalStateException(transport + " for a remote file: " + source.file());
    }
  }

  private void account(TimedEvent event, Read read, Transport transport) {
    if (event.isUnderWay()) {
      event.done(
          read.file(),
          read.fileOffset(),
          read.length(),
          transport,
          Residency.HOT.name().toLowerCase(Locale.ROOT),
          false);
    }
    counter.addRead(transport, read.length(), false, Residency.HOT);
  }

  private void startOnHost(
      SourceFile file, Read read, Target target, Runnable done, Consumer<Throwable> failed) {
    Runnable summed =
        () -> {
          host.sum(read, target);
          done.run();
        };
    switch (target) {
      case Target.InSlab in ->
          pending.start(
              file,
              HostTransport.place(read, in),
              read.fileOffset(),
              read.required(),
              summed,
              failed);
      case Target.Scattered(var pieces) -> scatter(file, read, pieces, summed, failed);
      case Target.OnEach _ -> throw new IllegalStateException("what several devices get is staged");
    }
  }

  private void scatter(
      SourceFile file,
      Read read,
      List<Target.Piece> pieces,
      Runnable done,
      Consumer<Throwable> failed) {
    Target.Piece first = pieces.getFirst();
    if (pieces.size() == 1 && HostTransport.isOneRow(first)) {
      pending.start(
          file,
          HostTransport.row(first),
          read.fileOffset() + first.rows().source(),
          first.rows().width(),
          done,
          failed);
      return;
    }
    HostSlab _ =
        Cleanup.orUndo(
            () -> Admission.slab(read.required()),
            buffer -> {
              pending.start(
                  file,
                  buffer.segment(),
                  read.fileOffset(),
                  read.required(),
                  () -> {
                    HostTransport.scatter(buffer.segment(), pieces);
                    done.run();
                    buffer.release();
                  },
                  reason -> {
                    buffer.release();
                    failed.accept(reason);
                  });
              return buffer;
            },
            HostSlab::release);
  }

  private void stage(
      SourceFile file, Read read, Target target, Runnable done, Consumer<Throwable> failed) {
    if (staging == null) {
      throw new IllegalStateException("no staging for " + file.file());
    }
    RemoteStaging.Place _ =
        Cleanup.orUndo(
            () -> staging.take(read, target),
            place -> {
              MemorySegment memory = place.memory();
              pending.start(
                  file,
                  memory,
                  read.fileOffset(),
                  read.required(),
                  () -> {
                    if (sums != null) {
                      sums.add(read.file(), read.fileOffset(), memory);
                    }
                    place.arrived();
                    done.run();
                  },
                  reason -> {
                    place.failed();
                    failed.accept(reason);
                  });
              return place;
            },
            RemoteStaging.Place::failed);
  }

  /// Waits until all started reads have ended, even if they failed, and until their copies are
  /// done, except copies on the stream of a [Target].
  void drain() {
    pending.drain();
    if (staging != null) {
      staging.drain();
    }
  }

  /// Waits until all started reads have ended, even if they failed.
  void awaitEnds() {
    pending.drain();
  }

  /// Ends the reads that are under way, waits for running copies, even after a failure, and frees the buffers.
  @Override
  public void close() {
    Cleanup.runAll(closing);
  }
}
