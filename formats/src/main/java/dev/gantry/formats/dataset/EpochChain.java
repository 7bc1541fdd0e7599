package dev.gantry.formats.dataset;

import dev.gantry.core.ring.Filling;
import dev.gantry.core.ring.FillingSource;
import java.util.Optional;

/// Several epochs, one after the other, without a pause for the ring between them.
public final class EpochChain implements FillingSource<BatchView> {
  private final Batches batches;
  private final long lastEpoch;
  private long epoch;

  /// Whether the epoch has given a batch, or began behind some.
  private boolean hasBatches;

  private FillingSource<BatchView> source;

  /// @param from where to begin
  /// @param lastEpoch the number of the last one to make
  public EpochChain(Batches batches, DatasetState from, long lastEpoch) {
    this.batches = batches;
    this.lastEpoch = lastEpoch;
    this.epoch = from.epoch();
    this.hasBatches = from.batch() > 0;
    this.source = batches.from(from);
  }

  @Override
  public Optional<Filling<BatchView>> next() {
    Optional<Filling<BatchView>> filling = source.next();
    // Where an epoch has no batch, the others have none either.
    while (filling.isEmpty() && hasBatches && epoch < lastEpoch) {
      epoch++;
      hasBatches = false;
      source.close();
      source = batches.from(batches.start().atEpoch(epoch));
      filling = source.next();
    }
    hasBatches |= filling.isPresent();
    return filling;
  }

  @Override
  public void close() {
    source.close();
  }
}
