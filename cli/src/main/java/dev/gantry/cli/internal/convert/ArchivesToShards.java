// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.convert;

import dev.gantry.cli.internal.input.Input;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.WrittenFiles;
import dev.gantry.core.Location;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.images.ImageDecoding;
import dev.gantry.formats.internal.batches.BatchView;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.FieldView;
import dev.gantry.formats.internal.batches.SelectedSamples;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.internal.webdataset.MemberKinds;
import dev.gantry.formats.internal.webdataset.TarIndex;
import dev.gantry.formats.internal.webdataset.WebDatasetCatalogue;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.webdataset.MemberField;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/// Writes WebDataset archives as raw tensor shards. Each sample of the archives becomes a sample,
/// in their order, and each extension a field. Pictures are decoded while further samples are read
/// ahead.
///
/// @param names the extensions that become fields; empty for all
/// @param decoding how pictures are decoded; empty if the archives should have none
/// @param pad whether members of different lengths are padded; their lengths become a further
///     field
public record ArchivesToShards(
    List<Location> files,
    List<String> names,
    Optional<ImageDecoding> decoding,
    boolean pad,
    Path output) {
  /// How many bytes of samples are read ahead at a time, unless one sample has more.
  private static final long BATCH_BYTES = 32L << 20;

  private static final int MAX_BATCH = 1024;

  public WrittenFiles run(GantrySession session, ShardOptions options) throws IOException {
    Input.requireNoWeights(session, output);
    long start = System.nanoTime();
    try (SampleCatalogue store = open(session)) {
      return WrittenFiles.of(output, write(session, store, options), start);
    }
  }

  private SampleCatalogue open(GantrySession session) {
    List<TarIndex> indexes = new ArrayList<>();
    return Cleanup.orUndo(
        () -> {
          try (Progress bar = Progress.ofSteps("read", files.size())) {
            for (Location file : files) {
              bar.onProgress(indexes.size(), files.size());
              indexes.add(TarIndex.scanAny(session, file));
            }
          }
          List<MemberField> fields = fields(new MemberKinds(indexes));
          List<String> all = new ArrayList<>();
          for (MemberField field : fields) {
            all.add(field.name());
            field.lengthField().ifPresent(length -> all.add(length.name()));
          }
          return WebDatasetCatalogue.of(session, indexes, fields, all);
        },
        () -> Cleanup.forEach(indexes, TarIndex::close));
  }

  private List<MemberField> fields(MemberKinds kinds) {
    for (String name : names) {
      if (!kinds.extensions().contains(name)) {
        throw new MisuseException(
            "--columns: no member has the extension '%s'; the extensions are %s"
                .formatted(name, kinds.extensions()));
      }
    }
    List<String> wanted = names.isEmpty() ? kinds.extensions() : names;
    List<String> pictures = wanted.stream().filter(MemberKinds::isPicture).toList();
    if (!pictures.isEmpty() && decoding.isEmpty()) {
      throw new MisuseException(
          "IN has pictures ("
              + String.join(", ", pictures)
              + "); --size must give the height and width of the decoded pictures, or --columns"
              + " must name other extensions");
    }
    if (!wanted.isEmpty() && pictures.isEmpty() && decoding.isPresent()) {
      throw new MisuseException(
          "--size applies only to members named .jpg, .jpeg or .png (IN has " + wanted + ")");
    }
    List<MemberField> fields = new ArrayList<>();
    // Some samples may have a picture as `jpg` and others as `png`. Extensions of pictures that
    // some samples lack therefore share one field.
    List<String> either = pictures.stream().filter(name -> !kinds.isInAll(name)).toList();
    for (String name : wanted) {
      if (!either.contains(name)) {
        fields.add(field(kinds, name));
      } else if (name.equals(either.getFirst())) {
        fields.add(MemberField.image(String.join(";", either), decoding.orElseThrow()));
      }
    }
    return fields;
  }

  private MemberField field(MemberKinds kinds, String name) {
    if (MemberKinds.isPicture(name)) {
      return MemberField.image(name, decoding.orElseThrow());
    }
    return kinds
        .known(name)
        .or(() -> kinds.ofOneLength(name))
        .or(() -> pad ? Optional.of(kinds.padded(name)) : Optional.empty())
        .orElseThrow(() ->
            new MisuseException(
                "the members '%s' have different lengths; --pad pads them, or --columns must name other extensions of %s"
                    .formatted(name, kinds.extensions())));
  }

  private ShardSet write(GantrySession session, SampleCatalogue store, ShardOptions options) {
    List<Field> fields = store.fields();
    long bytes = fields.stream().mapToLong(Field::sampleBytes).sum();
    int size = Math.clamp(BATCH_BYTES / Math.max(1, bytes), 1, MAX_BATCH);
    EpochBatches batches = EpochBatches.of(store, OrderOptions.of(size));
    long samples = SelectedSamples.count(store);
    long[] done = {0};
    try (ShardWriter writer = ShardWriter.create(session, output, fields, options);
        Progress bar = Progress.ofSteps("convert", samples)) {
      batches.readAll(
          session,
          batch -> {
            append(writer, batch);
            done[0] += batch.label().samples();
            bar.onProgress(done[0], samples);
          });
      return writer.finish();
    }
  }

  private static void append(ShardWriter writer, RingBatch<BatchView> batch) {
    int samples = batch.label().samples();
    try (Arena arena = Arena.ofShared()) {
      Map<String, Source> values = new HashMap<>();
      for (FieldView view : batch.label().fields()) {
        values.put(view.name(), new Memory.OnHost(dense(batch, view, samples, arena)));
      }
      writer.append(samples, values);
    }
  }

  /// Copies a field's values, which may have gaps between them in the batch, to contiguous memory.
  private static MemorySegment dense(
      RingBatch<BatchView> batch, FieldView view, int samples, Arena arena) {
    long size = view.dtype().alignmentBytes();
    long row = view.shape().elements().orElse(0) / samples * size;
    long pitch = view.strides().getFirst() * size;
    MemorySegment values = arena.allocate(row * samples, Long.BYTES);
    if (row == pitch) {
      batch.region(view.offset(), row * samples).copyTo(values);
    } else {
      for (int i = 0; i < samples && row > 0; i++) {
        batch.region(view.offset() + i * pitch, row).copyTo(values.asSlice(i * row, row));
      }
    }
    return values;
  }
}
