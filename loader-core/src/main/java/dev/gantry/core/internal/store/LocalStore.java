// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.Store;
import java.util.Set;

/// The file systems of this machine.
///
/// @param calls the calls that read the files
public record LocalStore(FileCalls calls) implements Store {
  @Override
  public Set<String> schemes() {
    return Set.of("file");
  }

  @Override
  public LocalFile open(Location file, CachePolicy policy) {
    return new PosixFile(calls, file.path(), policy);
  }
}
