// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.StoredFile;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// The store of the files that a server keeps in memory. It opens the files of this process's open
/// [ResidentWeights].
public final class ResidentStore implements Store {
  @Override
  public Set<String> schemes() {
    return Set.of(ResidentWeights.SCHEME);
  }

  @Override
  public StoredFile open(Location file, CachePolicy policy) {
    return find(file)
        .orElseThrow(() ->
            new TransferException(
                "open",
                file.toString(),
                new Failure.Remote(
                    404, "these resident weights are closed, or have no such file")));
  }

  /// Opens a file of weights that this process holds; the caller closes it. The result is empty if
  /// the location does not name such a file, or the weights were closed.
  public static Optional<ResidentFile> find(Location file) {
    return ResidentWeights.holding(file).flatMap(held -> held.open(file));
  }

  @Override
  public Optional<List<Location>> list(Location folder) {
    return Optional.of(
        ResidentWeights.holding(folder).map(ResidentWeights::files).orElse(List.of()));
  }
}
