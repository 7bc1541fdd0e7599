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
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardSet;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// The shards of [ImageSamples] as DJL has datasets: a read and an array a sample, which a
/// batchifier stacks. All labels are in memory from the start.
final class DjlShards extends RandomAccessDataset implements AutoCloseable {
  private static final Shape IMAGE = new Shape(3, 224, 224);

  private final List<FileChannel> channels = new ArrayList<>();
  private final List<Long> offsets = new ArrayList<>();
  private final long perShard;
  private final long[] labels;

  /// All shards have as many samples, but for the last.
  private DjlShards(Builder builder) throws IOException {
    super(builder);
    ShardSet set = ShardSet.open(builder.folder);
    perShard = set.shards().getFirst().samples();
    ByteBuffer all =
        ByteBuffer.allocate(Math.toIntExact(set.samples() * Long.BYTES))
            .order(ByteOrder.LITTLE_ENDIAN);
    for (Shard shard : set.shards()) {
      FileChannel channel = FileChannel.open(shard.file());
      channels.add(channel);
      offsets.add(shard.offset(0));
      int bytes = Math.toIntExact(shard.samples() * Long.BYTES);
      read(channel, all.slice(all.position(), bytes), shard.offset(1));
      all.position(all.position() + bytes);
    }
    labels = new long[Math.toIntExact(set.samples())];
    all.flip().asLongBuffer().get(labels);
  }

  private static void read(FileChannel channel, ByteBuffer target, long offset) throws IOException {
    while (target.hasRemaining()) {
      if (channel.read(target, offset + target.position()) < 0) {
        throw new IOException("the file is too short");
      }
    }
  }

  @Override
  public Record get(NDManager manager, long index) throws IOException {
    int shard = Math.toIntExact(index / perShard);
    long offset = offsets.get(shard) + index % perShard * ImageSamples.IMAGE_BYTES;
    ByteBuffer buffer = manager.allocateDirect(ImageSamples.IMAGE_BYTES);
    read(channels.get(shard), buffer, offset);
    // Its memory is the buffer's: nothing is copied before the batch is stacked.
    NDArray image = manager.create(buffer.flip(), IMAGE, DataType.UINT8);
    return new Record(new NDList(image), new NDList(manager.create(labels[(int) index])));
  }

  @Override
  protected long availableSize() {
    return labels.length;
  }

  @Override
  public void prepare(Progress progress) {}

  @Override
  public void close() throws IOException {
    for (FileChannel channel : channels) {
      channel.close();
    }
  }

  /// DJL's way to make a dataset.
  static final class Builder extends BaseBuilder<Builder> {
    private final Path folder;

    Builder(Path folder) {
      this.folder = folder;
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
