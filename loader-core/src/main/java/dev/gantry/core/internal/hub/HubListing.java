// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.hub;

import dev.gantry.core.TransferException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The files of the commit that a revision is now.
///
/// @param name the repository at that commit
record HubListing(HubName name, List<String> paths) {
  private static final Logger LOG = LoggerFactory.getLogger(HubListing.class);

  static HubListing of(HubParts parts, HubName name) {
    HubCache cache = parts.cache();
    HubSettings settings = parts.settings();
    Optional<String> last = cache.commit(name);
    String commit;
    if (name.isFixed() || settings.offline()) {
      commit = last.orElseThrow(() -> HubErrors.offline("list", name, settings));
    } else {
      try {
        commit = parts.client().commit(name, last.isEmpty());
        cache.note(name, commit);
      } catch (TransferException e) {
        if (HubErrors.isFinal(e) || last.isEmpty()) {
          throw e;
        }
        LOG.warn("{}; commit {} is used", e.getMessage(), last.get());
        commit = last.get();
      }
    }
    HubName at = name.at(commit);
    Optional<HubTree> known = cache.tree(at);
    if (known.isEmpty() && !settings.offline()) {
      try {
        HubTree tree = parts.client().tree(at);
        cache.keep(at, tree);
        known = Optional.of(tree);
      } catch (TransferException e) {
        if (HubErrors.isFinal(e) || !Files.isDirectory(cache.snapshot(at))) {
          throw e;
        }
        LOG.warn("{}; the files in the cache are listed", e.getMessage());
      }
    }
    return new HubListing(
        at,
        known
            .map(tree -> tree.files().stream().map(HubTree.Entry::path).toList())
            .orElseGet(() -> cached(cache.snapshot(at), name, settings)));
  }

  /// Returns the files of a snapshot that are in the cache.
  private static List<String> cached(Path snapshot, HubName name, HubSettings settings) {
    try (Stream<Path> files = Files.walk(snapshot)) {
      return files
          .filter(Files::isRegularFile)
          .map(file -> snapshot.relativize(file).toString())
          .sorted()
          .toList();
    } catch (IOException _) {
      throw HubErrors.offline("list", name, settings);
    }
  }
}
