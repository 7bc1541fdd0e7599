// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.Normalization;
import dev.gantry.core.internal.batch.NormalizedRows;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.formats.Field;
import dev.gantry.formats.spi.SampleCatalogue;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Supplier;
import java.util.stream.LongStream;

/// Batches with some fields normalised. The normalised fields follow all other areas of the slot.
public final class NormalizedBatches implements Batches {
  private final Batches batches;
  private final List<Field> fields;
  private final Map<String, FieldNormalization> how;
  private final int samples;
  private final Map<String, Target> targets = new LinkedHashMap<>();
  private final long bytes;

  /// @param offset the offset from the end of the other areas of a slot
  private record Target(Field field, FieldNormalization how, long offset) {}

  private NormalizedBatches(
      Batches batches, List<Field> fields, Map<String, FieldNormalization> how, int samples) {
    this.batches = batches;
    this.fields = fields;
    this.how = how;
    this.samples = samples;
    long at = 0;
    for (Field field : fields) {
      FieldNormalization chosen = how.get(field.name());
      if (chosen != null) {
        targets.put(field.name(), new Target(field, chosen, at));
        if (field.sampleBytes() > 0) {
          Normalization what = chosen.of(field, field.shape());
          long results = Math.multiplyExact(what.toBytes(), samples);
          at = Math.addExact(at, BatchLayout.align(results, BatchLayout.ALIGNMENT));
        }
      }
    }
    this.bytes = BatchLayout.align(at, PlanLimits.BLOCK_BYTES);
  }

  /// @param batches owned by the result
  /// @param fields the batches' fields, with the largest possible samples
  /// @param how the normalisation by field; other fields stay as they are
  /// @param samples the most samples of a batch
  /// @throws MisuseException if a field cannot be normalised this way, or a batch would be larger than any
  ///     memory
  public static Batches of(
      Batches batches, List<Field> fields, Map<String, FieldNormalization> how, int samples) {
    try {
      NormalizedBatches all = new NormalizedBatches(batches, fields, how, samples);
      long _ = all.slotBytes();
      return how.isEmpty() ? batches : all;
    } catch (ArithmeticException _) {
      throw new MisuseException(
          "no memory holds a normalised batch of " + samples + " samples; make it smaller");
    }
  }

  @Override
  public long slotBytes() {
    return Math.addExact(batches.slotBytes(), bytes);
  }

  @Override
  public long hostBytes() {
    return batches.hostBytes();
  }

  @Override
  public OptionalLong batchesPerEpoch() {
    return batches.batchesPerEpoch();
  }

  @Override
  public Optional<SampleCatalogue> catalogue() {
    return batches.catalogue();
  }

  @Override
  public DatasetState start() {
    return batches.start();
  }

  @Override
  public BatchPlanSource<BatchView> from(DatasetState state) {
    BatchPlanSource<BatchView> source = batches.from(state);
    return new BatchPlanSource<>() {
      @Override
      public Optional<BatchPlan<BatchView>> next() {
        return source.next().map(NormalizedBatches.this::normalized);
      }

      @Override
      public Optional<Supplier<BatchPlan<BatchView>>> nextGathered() {
        return source.nextGathered().map(later -> () -> normalized(later.get()));
      }

      @Override
      public void opened(Location file, Object identity) {
        source.opened(file, identity);
      }

      @Override
      public void close() {
        source.close();
      }
    };
  }

  private BatchPlan<BatchView> normalized(BatchPlan<BatchView> plan) {
    BatchView view = plan.label();
    List<FieldView> fields = new ArrayList<>();
    List<NormalizedRows> all = new ArrayList<>();
    for (FieldView field : view.fields()) {
      Target target = targets.get(field.name());
      fields.add(target == null ? field : normalized(field, target, all));
    }
    return plan.withNormalized(
        all, new BatchView(view.samples(), fields, view.after()), this::normalized);
  }

  private FieldView normalized(FieldView from, Target target, List<NormalizedRows> all) {
    long[] axes = from.shape().toArray();
    long samples = axes[0];
    TensorShape sample = TensorShape.of(LongStream.of(axes).skip(1).toArray());
    long to = batches.slotBytes() + target.offset();
    if (LongStream.of(axes).allMatch(axis -> axis > 0)) {
      Normalization what = target.how().of(target.field(), sample);
      long pitch = from.strides().getFirst() * from.dtype().alignmentBytes();
      all.add(new NormalizedRows(what, from.offset(), pitch, to, samples));
    }
    Field made = new Field(from.name(), target.how().to(), target.how().shape(sample));
    return FieldView.dense(made, samples, to);
  }

  @Override
  public List<Batches> parts(int count) {
    return batches.parts(count).stream()
        .<Batches>map(part -> new NormalizedBatches(part, fields, how, samples / count))
        .toList();
  }

  @Override
  public boolean lastHasOwn() {
    return batches.lastHasOwn();
  }

  @Override
  public void close() {
    batches.close();
  }
}
