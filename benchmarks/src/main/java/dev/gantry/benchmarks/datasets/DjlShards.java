// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.dataset.RandomAccessDataset;
import ai.djl.training.dataset.Record;
import ai.djl.util.Progress;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardSet;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;

/// The shards of [Samples] as a DJL dataset, which makes one read and one array for each sample. A
/// batchifier stacks the arrays. Labels are the samples' numbers and need no read.
final class DjlShards extends RandomAccessDataset implements AutoCloseable {
  private final List<FileChannel> channels = new ArrayList<>();
  private final List<Long> offsets = new ArrayList<>();
  private final Samples samples;
  private final long perShard;

  /// Opens the shards. All shards but the last must have the same number of samples.
  private DjlShards(Builder builder) throws IOException {
    super(builder);
    samples = builder.samples;
    ShardSet set = ShardSet.open(samples.shards());
    perShard = set.shards().getFirst().samples();
    for (Shard shard : set.shards()) {
      channels.add(FileChannel.open(shard.file()));
      offsets.add(shard.offset(0));
    }
  }

  @Override
  public Record get(NDManager manager, long index) throws IOException {
    int shard = Math.toIntExact(index / perShard);
    ByteBuffer buffer = manager.allocateDirect(samples.imageBytes());
    long offset = offsets.get(shard) + index % perShard * samples.imageBytes();
    HostCeilings.read(channels.get(shard), buffer, offset, samples.imageBytes());
    // The array shares the buffer's memory, so that nothing is copied before the batch is stacked.
    Shape shape = new Shape(samples.shape().toArray());
    NDArray image = manager.create(buffer.flip(), shape, DataType.UINT8);
    return new Record(new NDList(image), new NDList(manager.create(index)));
  }

  @Override
  protected long availableSize() {
    return samples.count();
  }

  @Override
  public void prepare(Progress progress) {}

  @Override
  public void close() throws IOException {
    for (FileChannel channel : channels) {
      channel.close();
    }
  }

  /// The builder of a dataset, as DJL's base class requires it.
  static final class Builder extends BaseBuilder<Builder> {
    private final Samples samples;

    Builder(Samples samples) {
      this.samples = samples;
    }

    @Override
    protected Builder self() {
      return this;
    }

    DjlShards build() throws IOException {
      return new DjlShards(this);
    }
  }
}
