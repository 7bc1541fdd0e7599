// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.copies.Replicas;
import dev.gantry.core.internal.events.DiskSpeeds;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.events.TransferCounter;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.threads.ReaderGrowth;
import dev.gantry.core.internal.transport.FileTransport.OpenFile;
import dev.gantry.core.spi.Residency;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// Reads ranges of local files into slabs, each range by its transport; [RemoteReads] reads remote
/// files. Takes staging buffers before the first read that is staged. Only one thread may use an
/// instance.
final class TransportReader implements AutoCloseable {
  private final @Nullable StagedTransport staged;
  private final TransferCounter counter;
  private final HostTransport host;
  private final @Nullable KnownChecksums sums;
  private final ReaderGrowth growth;
  private final ShiftedReads shifted = new ShiftedReads();

  /// Made with the reader, so that closing it needs no heap.
  private final List<Runnable> closing;

  private StagedTransport.@Nullable Reader staging;

  /// Copies bytes that cuFile has read from this reader's device to other devices; null before the
  /// first such read.
  private @Nullable TargetCopies passing;

  /// @param staged takes reads that are staged; null if nothing is staged
  /// @param sums adds the bytes that the CPU reads to checksums; null if no checksums are wanted
  /// @param growth counts how often this reader waits for the device
  TransportReader(
      @Nullable StagedTransport staged,
      TransferCounter counter,
      @Nullable KnownChecksums sums,
      ReaderGrowth growth) {
    this.staged = staged;
    this.counter = counter;
    this.sums = sums;
    this.growth = growth;
    this.host = new HostTransport(sums);
    this.closing = List.of(this::closeStaging, this::closePassing, shifted::close, host::close);
  }

  /// Does one read. Copies to the device may still be running when this returns: see
  /// [Target#stream] and [#drain].
  ///
  /// @return false if the read was not done, because all staging buffers are in use: see [#awaitBuffers]
  boolean read(OpenFile file, Read read, Target target) {
    SourceFile source = file.source();
    Residency residency = source.residency(read.fileOffset(), read.length());
    boolean direct = residency != Residency.HOT;
    Transport transport = transport(file, target, direct);
    if (transport == Transport.STAGED) {
      awaitBuffers(() -> false);
      if (staging == null) {
        return false;
      }
      // A wait for a buffer must not count as time of the read, so the buffer is made free before
      // the clock starts.
      staging.makeRoom(read, target);
    }
    TimedEvent event = TimedEvent.begun(EventKind.READ);
    boolean wentDirect;
    try {
      wentDirect =
          switch (transport) {
            case HOST ->
                watched(source, read, direct, () -> host.read(source, read, target, direct));
            case STAGED -> {
              StagedTransport.Reader staged = Objects.requireNonNull(staging);
              yield watched(
                  source, read, direct, () -> staged.read(source, read, target, direct, sums));
            }
            case MAPPED ->
                throw new IllegalStateException("a kernel fetches, no reader: " + source.file());
            case GDS, COMPAT -> byCuFile(file, read, target, direct);
          };
    } catch (TransferException e) {
      if (file.transport().fallBack(transport, e)) {
        counter.addFallback();
      }
      return read(file, read, target);
    }
    passOn(read, target, transport);
    account(event, read, transport, residency, wentDirect);
    return true;
  }

  /// Does a read, and measures the disk's speed if the read goes past the page cache.
  private boolean watched(SourceFile source, Read read, boolean direct, BooleanSupplier reading) {
    if (!direct
        || read.length() < DiskSpeeds.LEAST_BYTES
        || !(source.onDisk() instanceof SourceFile.Identity(long device, _, _, _))) {
      return reading.getAsBoolean();
    }
    DiskSpeeds disks = counter.disks();
    long begun = System.nanoTime();
    disks.begin(device, begun);
    long bytes = 0;
    try {
      boolean went = reading.getAsBoolean();
      bytes = went ? read.length() : 0;
      return went;
    } finally {
      disks.end(device, begun, System.nanoTime(), bytes);
    }
  }

  private void account(
      TimedEvent event, Read read, Transport transport, Residency residency, boolean direct) {
    if (event.isUnderWay()) {
      event.done(
          read.file(),
          read.fileOffset(),
          read.length(),
          transport,
          residency.name().toLowerCase(Locale.ROOT),
          direct);
    }
    counter.addRead(transport, read.length(), direct, residency);
  }

  /// Returns the transport of a read. Although the file's transport is cuFile's, a read is staged
  /// if cuFile cannot register the memory and the caller did not ask for cuFile, if the rows are
  /// too short for requests to a disk, or if some bytes go to the host or to a device that the
  /// others cannot reach.
  private Transport transport(OpenFile file, Target target, boolean direct) {
    Transport transport = file.transport().of(!direct);
    return switch (transport) {
      case STAGED, MAPPED, HOST -> transport;
      case GDS, COMPAT ->
          switch (target) {
            case Target.InSlab _ -> transport;
            case Target.OnEach _ ->
                Objects.requireNonNull(replicas()).refusal().isEmpty()
                    ? transport
                    : Transport.STAGED;
            case Target.Scattered scattered ->
                file.transport().isAskedFor() || file.transport().cuFile().suits(scattered)
                    ? transport
                    : Transport.STAGED;
          };
    };
  }

  private @Nullable Replicas replicas() {
    return staged == null ? null : staged.replicas();
  }

  /// Has cuFile read a range. If several devices get the range, it is read to this reader's own
  /// device; see [#passOn].
  private boolean byCuFile(OpenFile file, Read read, Target target, boolean direct) {
    Target own =
        target instanceof Target.OnEach(var slabs) ? Target.of(passing().own(slabs)) : target;
    CuFileTransport cuFile = file.transport().cuFile();
    boolean wentDirectly =
        (own instanceof Target.InSlab in && ShiftedReads.isShifted(read))
            ? shifted.read(cuFile, file.source(), read, in, direct)
            : cuFile.read(file.source(), read, own, direct, counter::addPassed);
    file.source().requireUnchanged();
    return wentDirectly;
  }

  /// Has this reader's device copy the bytes that cuFile has read to the other devices that get
  /// them.
  private void passOn(Read read, Target target, Transport transport) {
    boolean byCuFile = transport == Transport.GDS || transport == Transport.COMPAT;
    if (byCuFile && target instanceof Target.OnEach(var slabs)) {
      passing().passOn(slabs, read);
    }
  }

  private TargetCopies passing() {
    if (passing == null) {
      passing = new TargetCopies(Objects.requireNonNull(staged));
    }
    return passing;
  }

  /// Waits for staging buffers, unless this reader has some.
  ///
  /// @param wanted asked whether to go on waiting, as for
  ///     [dev.gantry.core.internal.copies.StagingPool.Share#take]
  void awaitBuffers(BooleanSupplier wanted) {
    if (staging == null && staged != null) {
      staging = staged.openReader(wanted, growth);
    }
  }

  /// Gives the staging buffers back if another load waits for some and has fewer.
  void giveWay() {
    if (staging != null && staged != null && staged.buffers().shouldGiveOneBack()) {
      closeStaging();
    }
  }

  /// Waits until all bytes have arrived.
  void drain() {
    if (staging != null) {
      staging.drain();
    }
    if (passing != null) {
      passing.drain();
    }
  }

  /// Waits for running reads and copies, even after a failure, and gives the buffers back.
  @Override
  public void close() {
    Cleanup.runAll(closing);
  }

  private void closePassing() {
    TargetCopies passedOn = passing;
    passing = null;
    if (passedOn != null) {
      try {
        passedOn.drain();
      } finally {
        passedOn.close();
      }
    }
  }

  private void closeStaging() {
    StagedTransport.Reader closing = staging;
    staging = null;
    if (closing != null) {
      closing.close();
    }
  }
}
