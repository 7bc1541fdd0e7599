// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.datasets.DatasetSettings;
import dev.gantry.djl.internal.datasets.FieldRoles;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.files.NamePatterns;
import dev.gantry.formats.shards.ShardSet;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/// Gives the samples of raw tensor shards as batches. Unshuffled, a batch is one aligned read for each field,
/// and its arrays lie where the read put the bytes.
///
/// A field becomes an array of its dtype with the batch's axis before its shape.
public final class ShardDataset extends GantryDataset {
  private ShardDataset(Batches batches, DatasetSettings settings) {
    super(batches, settings);
  }

  /// A builder; path and sampling must be set.
  public static Builder builder() {
    return new Builder();
  }

  /// Makes [ShardDataset]s. Not thread-safe.
  public static final class Builder extends DatasetBuilder<Builder> {
    private Function<GantrySession, List<Location>> paths = _ -> List.of();
    private boolean verify;

    private Builder() {}

    @Override
    Builder self() {
      return this;
    }

    /// The folder, or its `shards.json`.
    public Builder setPath(Path chosen) {
      Location path = Location.of(MisuseException.requireGiven("setPath", chosen));
      paths = _ -> List.of(path);
      return this;
    }

    /// The folders, or their `shards.json`, by paths or URLs such as `s3://bucket/folder/`. Several are read one
    /// after the other, and must have the same fields. A name may stand for several, as in `day-*` and
    /// `day-{01..31}`; `*` and `?` match local folders only.
    public Builder setPath(String... chosen) {
      List<String> names = names("setPath", "a name", chosen);
      paths = session -> NamePatterns.expand(session, "setPath", names, true);
      return this;
    }

    /// Whether to read all shards once, when this is built, and compare their checksums; else only
    /// their sizes are compared.
    public Builder optVerify(boolean chosen) {
      verify = chosen;
      return this;
    }

    /// @throws MisuseException if path or batch size is missing, a field is unknown, or none is a
    ///     label
    /// @throws dev.gantry.core.MalformedFileException if `shards.json` breaks a rule, or the shards
    ///     are not what it says
    /// @throws dev.gantry.core.TransferException if a file cannot be read
    public ShardDataset build() {
      List<ShardSet> sets = new ArrayList<>();
      for (Location path : paths.apply(session())) {
        NamePatterns.requireThere("setPath", path);
        sets.add(ShardSet.open(session(), path));
      }
      if (sets.isEmpty()) {
        throw new MisuseException("setPath was not called; it says where the shards are");
      }
      ShardSet shards = sets.getFirst();
      List<String> available = shards.fields().stream().map(Field::name).toList();
      FieldRoles roles = roles(available);
      DatasetSettings settings = settings(roles);
      List<String> fields = chosen().fields(roles.all(), available);
      Batches batches = batches(ShardSet.catalogue(sets, fields), roles);
      if (verify) {
        sets.forEach(set -> set.verify(session()));
      }
      return new ShardDataset(normalized(batches, shards.fields(), roles), settings);
    }
  }
}
