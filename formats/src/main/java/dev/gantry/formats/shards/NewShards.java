// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// Writes whole arrays as raw tensor shards, from where they are: no sample is copied on its way,
/// but where a file's blocks or a device want it.
public final class NewShards {
  private static final Source PADDING =
      new Memory.OnHost(MemorySegment.ofArray(new byte[ShardSet.PAGE_BYTES]).asReadOnly());

  private final NewShardSet plan;
  private final Map<String, Source> values;
  private final List<ShardLayout> layouts = new ArrayList<>();

  private NewShards(NewShardSet plan, Map<String, Source> values, long samples) {
    this.plan = plan;
    this.values = values;
    long each = plan.capacity().samples();
    plan.requireRoom((samples - 1) / each);
    for (long done = 0; done < samples; done += each) {
      layouts.add(ShardLayout.of(plan.fields(), Math.min(each, samples - done)));
    }
  }

  /// As [#write(Session, Path, List, long, Map, ShardOptions)], with the process's shared session.
  public static ShardSet write(
      Path folder,
      List<Field> fields,
      long samples,
      Map<String, Source> values,
      ShardOptions options) {
    return write(GantrySession.shared(), folder, fields, samples, values, options);
  }

  /// Writes a dataset, and returns when it is there as a whole. A failure leaves none; a crash may
  /// leave what the next writer clears. Whatever was queued on a device before comes first.
  ///
  /// @param folder as [ShardWriter#create] has it
  /// @param samples how many there are, 0 or more
  /// @param values of each field by its name: those of all samples end to end, little endian, in C
  ///     order. They must not change before this returns
  /// @param options of which the writers do not count: all files are one [GantrySession#write]
  /// @throws MisuseException if a field is missing or unknown, or its values are of another size;
  ///     and as [ShardWriter#create] has it
  /// @throws TransferException if a file or device fails, or the caller cancels
  public static ShardSet write(
      Session session,
      Path folder,
      List<Field> fields,
      long samples,
      Map<String, Source> values,
      ShardOptions options) {
    MisuseException.requireRange("samples", samples, 0, Long.MAX_VALUE);
    GantrySession own = GantrySession.of(session);
    NewShardSet plan = NewShardSet.of(folder, fields, options);
    plan.checkNames(values);
    for (Field field : fields) {
      Source value = Objects.requireNonNull(values.get(field.name()));
      NewShardSet.checkValues(field, samples, value);
    }
    NewShards shards = new NewShards(plan, values, samples);
    ShardFolder prepared = ShardFolder.prepare(own, folder, false);
    return Cleanup.orUndo(
        () -> {
          ShardSet set = plan.set(shards.write(own));
          prepared.finish(set, options.write());
          return set;
        },
        prepared::takeBack);
  }

  private List<Shard> write(GantrySession session) {
    List<NewFile> files = new ArrayList<>();
    long first = 0;
    for (ShardLayout layout : layouts) {
      files.add(plan.file(files.size(), contents(layout, first)));
      first += layout.samples();
    }
    WriteReport report = session.write(files, plan.options().write());
    List<Shard> shards = new ArrayList<>();
    for (int i = 0; i < files.size(); i++) {
      shards.add(plan.shard(files.get(i), layouts.get(i), report.files().get(i)));
    }
    return shards;
  }

  /// @param first the shard's first sample, among all
  private List<Source> contents(ShardLayout layout, long first) {
    List<Source> contents = new ArrayList<>();
    for (int i = 0; i < plan.fields().size(); i++) {
      Field field = plan.fields().get(i);
      long each = field.sampleBytes();
      Source all = Objects.requireNonNull(values.get(field.name()));
      contents.add(all.slice(first * each, layout.samples() * each));
      contents.add(PADDING.slice(0, layout.extentBytes(i) - layout.samples() * each));
    }
    return contents;
  }
}
