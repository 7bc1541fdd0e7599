// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.formats.spi.SampleCatalogue;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/// A dataset as this rank sees it: the batches of each epoch, in an order that depends on nothing
/// but the dataset, the seed and the epoch.
///
/// Thread-safe; each source that it gives is for one ring.
public interface Batches extends AutoCloseable {
  /// The size of a slot that any of the batches fits in, in bytes, a multiple of 4096.
  long slotBytes();

  /// The most bytes of a batch that the CPU makes.
  long hostBytes();

  /// How many batches each epoch has on each rank; empty if this is not known without reading the
  /// files.
  OptionalLong batchesPerEpoch();

  /// The samples; empty if they are not reached by number.
  default Optional<SampleCatalogue> catalogue() {
    return Optional.empty();
  }

  /// The state in which a training begins.
  DatasetState start();

  /// Returns the batches from `state` to the end of its epoch. The call takes no longer for later
  /// batches, unless the implementation says so. The files that the plans read belong to these
  /// batches: a source that came to its end may be closed before the last reads. The memory from
  /// which host writers write may belong to the source: it is closed when all writers have run,
  /// or when none will run any more.
  ///
  /// @throws dev.gantry.core.MisuseException if the state is of another dataset, or of another
  ///     order of its samples
  BatchPlanSource<BatchView> from(DatasetState state);

  /// The same batches, each cut into `count` equal parts: the first part has the first samples of
  /// each batch, and so on. The last batch of an epoch may be smaller; its samples are dealt as
  /// they are to ranks. The states of the parts are those of these batches, which own them.
  ///
  /// @param count divides the batch size
  /// @throws dev.gantry.core.MisuseException if a batch cannot be cut so
  default List<Batches> parts(int count) {
    throw new MisuseException(
        "optDevices with "
            + count
            + " devices needs samples that are reached by number: raw shards, or TFRecord with an"
            + " index");
  }

  /// Whether a part has samples of its own in the last batch of an epoch. If there are fewer
  /// samples than parts, a part without samples repeats a sample of another batch.
  default boolean lastHasOwn() {
    return true;
  }

  @Override
  default void close() {}
}
