// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.datasets.DatasetSettings;
import dev.gantry.djl.internal.datasets.FieldRoles;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.NamePatterns;
import dev.gantry.formats.internal.files.OtherFormats;
import dev.gantry.formats.internal.webdataset.MemberKinds;
import dev.gantry.formats.internal.webdataset.StoredIndex;
import dev.gantry.formats.internal.webdataset.StoredIndex.Found.Unusable;
import dev.gantry.formats.internal.webdataset.StoredIndex.Found.Usable;
import dev.gantry.formats.internal.webdataset.TarIndex;
import dev.gantry.formats.internal.webdataset.WebDatasetCatalogue;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.webdataset.MemberField;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// Gives the samples of WebDataset's tar archives as batches, in any order.
///
/// When it is built, the headers of all members are read, or the indexes beside the archives ([IndexUse]). Members of one size then go from the archive to the
/// device as they are; others are padded or decoded by the CPU while batches are read ahead. Archives that
/// are compressed with gzip as a whole have no index; they are decompressed once, when the dataset is built, into
/// temporary files, which go when it is closed.
///
/// A field becomes an array of its dtype with the batch's axis before its shape. A padded field is followed by
/// a field of the lengths, named after it with the ending `_length`; that field is data, like all fields that
/// are no labels, unless `optData` says otherwise.
public final class WebDataset extends GantryDataset {
  private static final String TAR = ".tar";

  private WebDataset(Batches batches, DatasetSettings settings) {
    super(batches, settings);
  }

  /// A builder; path and sampling must be set.
  public static Builder builder() {
    return new Builder();
  }

  /// Makes [WebDataset]s. Not thread-safe.
  public static final class Builder extends DatasetBuilder<Builder> {
    private List<String> names = List.of();
    private final List<MemberField> fields = new ArrayList<>();

    private IndexUse indexUse = IndexUse.WHERE_THERE;

    private Builder() {}

    @Override
    Builder self() {
      return this;
    }

    /// One archive, or a folder: then its files whose names end in `.tar`, in the order of their names.
    public Builder setPath(Path chosen) {
      return setPath(MisuseException.requireGiven("setPath", chosen).toString());
    }

    /// The archives and folders of them, in their order, by their paths or by URLs such as
    /// `s3://bucket/train-000.tar`. A name may stand for several, as in `train-{000..127}.tar`,
    /// `{train,extra}-0.tar` and `train-*.tar`: those of braces in the order in which they are written, those
    /// of `*` and `?` in the order of their names.
    public Builder setPath(String... chosen) {
      names = names("setPath", "a name", chosen);
      return this;
    }

    /// Adds a field, which each sample must have. If you add none, `npy` members become arrays and those that
    /// webdataset takes for integers, such as `cls`, become I64, if these are all fields of the samples.
    public Builder addField(MemberField field) {
      fields.add(MisuseException.requireGiven("addField", field));
      return this;
    }

    /// Whether the indexes beside the archives are used, so that the archives' headers need not
    /// be read. Unless you choose otherwise, indexes that exist and are up to date are used;
    /// `BUILD` writes those that are not, and `REQUIRE` refuses archives without an index. The
    /// samples and their order are the same in any case.
    public Builder optIndex(IndexUse chosen) {
      indexUse = MisuseException.requireGiven("optIndex", chosen);
      return this;
    }

    /// @throws MisuseException if archives or batch size are missing, a field is unknown, none is a label, or
    ///     a sample lacks a field or has it in another form than was said
    /// @throws dev.gantry.core.MalformedFileException if an archive is damaged
    /// @throws dev.gantry.core.TransferException if a folder cannot be listed, or a file cannot be read
    public WebDataset build() {
      List<TarIndex> indexes = new ArrayList<>();
      return Cleanup.orUndo(
          () -> {
            for (Location file : files()) {
              indexes.add(index(file));
            }
            return build(indexes, fields.isEmpty() ? inferred(indexes) : fields);
          },
          () -> Cleanup.forEach(indexes, TarIndex::close));
    }

    private TarIndex index(Location file) {
      StoredIndex.Found found =
          indexUse == IndexUse.NONE
              ? new Unusable("no index is wanted")
              : StoredIndex.open(session(), file);
      return switch (found) {
        case Usable(TarIndex index) -> index;
        case Unusable(String reason) ->
            switch (indexUse) {
              case REQUIRE -> throw new MisuseException(reason + "; index the archive");
              case BUILD -> StoredIndex.build(session(), file, (_, _) -> {});
              case WHERE_THERE, NONE -> TarIndex.scanAny(session(), file);
            };
      };
    }

    private WebDataset build(List<TarIndex> indexes, List<MemberField> known) {
      List<String> available = new ArrayList<>();
      for (MemberField field : known) {
        available.add(field.name());
        field.lengthField().ifPresent(length -> available.add(length.name()));
      }
      if (Set.copyOf(available).size() < available.size()) {
        throw new MisuseException("addField: two fields have one name: " + available);
      }
      FieldRoles roles = roles(available);
      DatasetSettings settings = settings(roles);
      List<String> read = chosen().fields(roles.all(), available);
      List<MemberField> wanted =
          known.stream()
              .filter(field ->
                  read.contains(field.name())
                      || field.lengthField().filter(f -> read.contains(f.name())).isPresent())
              .toList();
      SampleCatalogue store = WebDatasetCatalogue.of(session(), indexes, wanted, read);
      List<Field> fields = store.fields();
      Batches batches = batches(store, roles);
      return new WebDataset(normalized(batches, fields, roles), settings);
    }

    private List<Location> files() {
      List<Location> files = new ArrayList<>();
      List<Folder> searched = new ArrayList<>();
      for (Location file : NamePatterns.expand(session(), "setPath", names, false)) {
        Optional<Folder> folder = Folder.at(session(), file);
        folder.ifPresentOrElse(found -> files.addAll(found.named(TAR)), () -> files.add(file));
        folder.ifPresent(searched::add);
        NamePatterns.requireThere("setPath", file);
      }
      if (files.isEmpty()) {
        throw new MisuseException(
            names.isEmpty()
                ? "setPath was not called; it says what to read"
                : "setPath: there is no archive named *%s in %s%s"
                    .formatted(
                        TAR, String.join(", ", names), OtherFormats.instead(searched.getFirst())));
      }
      return files;
    }

    /// The fields of the samples, where their extensions tell what they are.
    private static List<MemberField> inferred(List<TarIndex> indexes) {
      MemberKinds kinds = new MemberKinds(indexes);
      List<String> others =
          kinds.extensions().stream().filter(name -> kinds.known(name).isEmpty()).toList();
      if (!others.isEmpty()) {
        throw new MisuseException(
            ("addField was not called, and the extensions %s do not tell what the members hold;"
                    + " add the fields that are wanted")
                .formatted(others));
      }
      return kinds.extensions().stream().flatMap(name -> kinds.known(name).stream()).toList();
    }
  }
}
