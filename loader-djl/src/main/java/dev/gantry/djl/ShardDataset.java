// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.datasets.DatasetSettings;
import dev.gantry.djl.internal.datasets.FieldRoles;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.shards.ShardSet;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

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

  /// Makes [ShardDataset]s. For one thread.
  public static final class Builder extends DatasetBuilder<Builder> {
    private @Nullable Location path;
    private boolean verify;

    private Builder() {}

    @Override
    Builder self() {
      return this;
    }

    /// The folder, or its `shards.json`.
    public Builder setPath(Path chosen) {
      path = Location.of(MisuseException.requireGiven("setPath", chosen));
      return this;
    }

    /// The folder, or its `shards.json`, by a path or a URL such as `s3://bucket/folder/`.
    public Builder setPath(String chosen) {
      path = Location.of(MisuseException.requireGiven("setPath", chosen));
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
      if (path == null) {
        throw new MisuseException("setPath was not called; it says where the shards are");
      }
      if (path instanceof Location.Local(Path local, _)) {
        requireThere("setPath", local);
      }
      ShardSet shards = ShardSet.open(session(), path);
      FieldRoles roles = roles(shards.fields().stream().map(Field::name).toList());
      DatasetSettings settings = settings(roles);
      Batches batches = EpochBatches.of(shards.catalogue(roles.all()), order(), limits());
      if (verify) {
        shards.verify(session());
      }
      return new ShardDataset(normalized(batches, shards.fields(), roles), settings);
    }
  }
}
