package dev.gantry.core.ring;

import java.util.Optional;

/// Says what the batches are, one after the other.
///
/// A ring asks one thread at a time, and before it fills the batch: as many batches ahead of the
/// consumer as it has slots. What this throws is thrown at the consumer in place of that batch, and
/// ends the ring.
public interface FillingSource<T> extends AutoCloseable {
  /// The next batch, or empty at the end.
  Optional<Filling<T>> next();

  /// Called once, when nothing is asked or made any more; also where the ring could not be opened.
  @Override
  default void close() {}
}
