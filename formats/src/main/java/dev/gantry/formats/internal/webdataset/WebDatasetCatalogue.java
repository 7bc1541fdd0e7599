// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.batch.DevicePictures;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.files.KnownFiles;
import dev.gantry.formats.internal.files.ValueFiles;
import dev.gantry.formats.internal.index.Column;
import dev.gantry.formats.internal.order.Mix;
import dev.gantry.formats.spi.FieldDecoder;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import dev.gantry.formats.webdataset.MemberField;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// The catalogue of the samples of tar archives, by the archives' indexes. Raw members and NumPy
/// arrays are read from the archives as memory holds them; the CPU pads or decodes all other
/// members; integers come from the index. Thread-safe.
public final class WebDatasetCatalogue implements SampleCatalogue {
  private final List<TarIndex> indexes;
  private final List<StoredMember> members;

  /// For each field of batches, the index in [#members] of the member that it comes from.
  private final List<Integer> origins = new ArrayList<>();

  private final List<Field> fields = new ArrayList<>();
  private final long sampleSpan;
  private final ValueFiles values;
  private final KnownFiles files = new KnownFiles("open the dataset again");

  private WebDatasetCatalogue(
      GantrySession session,
      List<TarIndex> indexes,
      List<StoredMember> members,
      List<String> names) {
    this.indexes = List.copyOf(indexes);
    this.members = List.copyOf(members);
    for (String name : names) {
      for (int i = 0; i < members.size(); i++) {
        StoredMember member = members.get(i);
        if (member.field().name().equals(name)) {
          origins.add(i);
          fields.add(member.field());
        } else if (member.wanted().lengthField().filter(f -> f.name().equals(name)).isPresent()) {
          origins.add(i);
          fields.add(member.wanted().lengthField().get());
        }
      }
    }
    this.sampleSpan = span();
    this.values = new ValueFiles(session, indexes.stream().map(TarIndex::data).toList(), files);
    indexes.forEach(index -> files.expect(index.data(), index.identity()));
  }

  /// Makes a catalogue that owns the indexes.
  ///
  /// @param indexes the indexes of the archives, in order
  /// @param wanted the fields, each name once
  /// @param names the names of the fields and lengths that batches have, in order
  /// @throws MisuseException if there is no sample, or a sample lacks a field or has it in another form
  /// @throws MalformedFileException if the header of a NumPy array is damaged
  public static WebDatasetCatalogue of(
      GantrySession session, List<TarIndex> indexes, List<MemberField> wanted, List<String> names) {
    return Cleanup.orUndo(
        () -> {
          if (indexes.stream().allMatch(index -> index.samples() == 0)) {
            throw new MisuseException(
                "no samples in "
                    + indexes.stream().limit(3).map(TarIndex::file).toList()
                    + (indexes.size() > 3 ? " and %d more".formatted(indexes.size() - 3) : ""));
          }
          List<StoredMember> members =
              wanted.stream().map(field -> StoredMember.of(session, field, indexes)).toList();
          return new WebDatasetCatalogue(session, indexes, members, names);
        },
        () -> Cleanup.forEach(indexes, TarIndex::close));
  }

  private StoredMember member(int field) {
    return members.get(origins.get(field));
  }

  /// Whether a field holds the lengths of another one.
  private boolean isLength(int field) {
    return !fields.get(field).name().equals(member(field).field().name());
  }

  @Override
  public List<Field> fields() {
    return List.copyOf(fields);
  }

  @Override
  public List<Long> fileSamples() {
    return indexes.stream().map(TarIndex::samples).toList();
  }

  /// Identifies the dataset by its files' names, sizes and numbers of samples.
  @Override
  public String identity() {
    StringBuilder identity = new StringBuilder("webdataset");
    for (TarIndex index : indexes) {
      // The slash separates entries, since no file's name has one.
      identity.append('/').append(index.file().fileName());
      identity.append('/').append(index.fileBytes());
      identity.append('/').append(index.samples());
    }
    return identity.toString();
  }

  @Override
  public FieldSource source(int field) {
    return isLength(field) ? new FieldSource.HostWritten() : member(field).source();
  }

  @Override
  public long sampleSpan() {
    return sampleSpan;
  }

  private long span() {
    long most = 0;
    for (int i = 0; i < indexes.size(); i++) {
      TarIndex index = indexes.get(i);
      for (long sample = 0; sample < index.samples(); sample++) {
        long first = Long.MAX_VALUE;
        long end = 0;
        for (StoredMember member : members) {
          long bytes = member.field().sampleBytes();
          if (member.isInFiles() && bytes > 0) {
            long at = index.offset(index.member(sample, member.members().get(i)));
            first = Math.min(first, at + member.skipped());
            end = Math.max(end, at + member.skipped() + bytes);
          }
        }
        most = Math.max(most, end - Math.min(first, end));
      }
    }
    return most;
  }

  @Override
  public void pieces(int field, SampleRun run, PieceSink sink) {
    TarIndex index = indexes.get(run.file());
    StoredMember member = member(field);
    boolean[] wanted = member.members().get(run.file());
    for (long sample = run.first(); sample < run.first() + run.count(); sample++) {
      long at = index.offset(index.member(sample, wanted)) + member.skipped();
      sink.piece(index.data(), at, 1);
    }
  }

  @Override
  public void opened(Location file, Object identity) {
    files.check(file, identity);
  }

  @Override
  public void write(int field, SampleRun run, MemorySegment target, long offset) {
    write(field, run, 0, target, offset);
  }

  @Override
  public void write(int field, SampleRun run, long epoch, MemorySegment target, long offset) {
    TarIndex index = indexes.get(run.file());
    StoredMember member = member(field);
    boolean[] wanted = member.members().get(run.file());
    if (isLength(field) || member.wanted() instanceof MemberField.IntegerText) {
      for (int i = 0; i < run.count(); i++) {
        long at = index.member(run.first() + i, wanted);
        long value = isLength(field) ? index.length(at) : index.value(at);
        target.set(Column.LONG, offset + (long) i * Long.BYTES, value);
      }
      return;
    }
    long[] at = new long[run.count()];
    List<Extent> places = new ArrayList<>();
    for (int i = 0; i < run.count(); i++) {
      at[i] = index.member(run.first() + i, wanted);
      places.add(new Extent(index.data(), index.offset(at[i]), index.length(at[i])));
    }
    long bytes = member.field().sampleBytes();
    values.read(
        run.file(),
        places,
        (i, value) -> {
          MemorySegment place = target.asSlice(offset + i * bytes, bytes);
          if (member.wanted() instanceof MemberField.Decoded decoded) {
            long seed = Mix.key(run.file(), epoch, run.first() + i);
            decode(decoded, index, at[i], value, place, seed);
          } else {
            place.copyFrom(value);
            place.asSlice(value.byteSize()).fill((byte) 0);
          }
        });
  }

  private static void decode(
      MemberField.Decoded field,
      TarIndex index,
      long member,
      MemorySegment value,
      MemorySegment target,
      long seed) {
    try {
      FieldDecoder decoder = field.decoder();
      DevicePictures.run(decoder, () -> decoder.decode(value, target, seed));
    } catch (IOException e) {
      throw new MalformedFileException(
          index.file(),
          index.offset(member),
          "undecodable",
          "field '" + field.name() + "': " + e.getMessage());
    }
  }

  @Override
  public void close() {
    try (values) {
      Cleanup.forEach(indexes, TarIndex::close);
    }
  }
}
