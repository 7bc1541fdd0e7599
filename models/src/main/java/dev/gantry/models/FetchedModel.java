// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.djl.Weights;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/// The files of a model on this machine. They may lack the weights, which are then loaded from the
/// store of the original folder.
///
/// @param root the location that was given: a folder, or a GGUF file
/// @param path the folder or GGUF file of the model itself: `config.json`, the tokenizer, the
///     weights
/// @param weights opens the weights of the model itself
record FetchedModel(Path root, Path path, Supplier<Weights> weights) {
  /// The endings of names of files that describe a model and its tokenizer.
  private static final Set<String> DESCRIBING = Set.of(".json", ".txt", ".jinja", ".model");

  private static final String INDEX = ".index.json";
  private static final String GGUF = ".gguf";
  private static final Set<String> FIRST = Set.of("config.json", "modules.json");
  private static final int FILES_AT_ONCE = 8;

  /// A name of the hub, as its pages show it.
  private static final Pattern NAME = Pattern.compile("\\w[\\w.-]*/\\w[\\w.-]*");

  /// Copies the files that describe a model to this machine, unless they are there already.
  ///
  /// @param location a local folder or file, or a folder or GGUF file of a store that has a cache
  ///     folder, such as `hf://`
  /// @throws MisuseException if the store has no cache folder, or the location is no model
  static FetchedModel of(String location) {
    return switch (Location.of(location)) {
      case Location.Local(Path path, _) -> local(path);
      case Location.Remote remote -> of(GantrySession.shared(), remote);
    };
  }

  /// @param path a local folder or file
  /// @throws MisuseException if the path does not exist and looks like a model's name on the hub
  static FetchedModel local(Path path) {
    if (NAME.matcher(path.toString()).matches() && Files.notExists(path)) {
      throw new MisuseException(
          "there is no folder %1$s; that model of the hub is hf://%1$s".formatted(path));
    }
    return new FetchedModel(path, path, () -> Weights.open(path));
  }

  /// Returns the same files with the folder of the transformer that `modules.json` names.
  FetchedModel transformer() {
    Path model = SentenceFolder.transformer(root);
    return model.equals(root) ? this : new FetchedModel(root, model, () -> Weights.open(model));
  }

  private static FetchedModel of(GantrySession session, Location.Remote location) {
    if (!session.keeps(location)) {
      throw new MisuseException(
          "a model must be a local folder or one of the hub, such as hf://OWNER/NAME (was "
              + location
              + ")");
    }
    if (location.fileName().endsWith(GGUF)) {
      return local(session.fetch(location));
    }
    List<Location> files = session.list(location).orElse(List.of());
    if (files.stream().noneMatch(file -> FIRST.contains(file.fileName()))) {
      return gguf(session, location, files);
    }
    Path root = fetch(session, files.stream().filter(FetchedModel::describes).toList());
    for (Path module : SentenceFolder.folders(root)) {
      if (!module.equals(root)) {
        Location.Remote first = (Location.Remote) files.getFirst();
        var folder = (Location.Remote) first.sibling(root.relativize(module) + "/");
        List<Location> inside = session.list(folder).orElse(List.of());
        if (!inside.isEmpty()) {
          Path _ = fetch(session, inside);
        }
      }
    }
    String pinned = ((Location.Remote) files.getFirst()).uri().resolve(".").toString();
    return new FetchedModel(root, root, () -> Weights.open(pinned));
  }

  private static boolean describes(Location file) {
    String name = file.fileName();
    return DESCRIBING.stream().anyMatch(name::endsWith) && !name.endsWith(INDEX);
  }

  private static FetchedModel gguf(
      GantrySession session, Location.Remote location, List<Location> files) {
    List<Location> found = files.stream().filter(file -> file.fileName().endsWith(GGUF)).toList();
    if (found.size() != 1) {
      throw new MisuseException(
          location
              + (found.isEmpty()
                  ? " has no config.json, so it is not a model"
                  : " has no config.json, and several GGUF files: name one, such as "
                      + found.getFirst().fileName()));
    }
    return local(session.fetch((Location.Remote) found.getFirst()));
  }

  /// Copies several files of one folder at the same time.
  ///
  /// @return the folder of the copies
  private static Path fetch(GantrySession session, List<Location> files) {
    Queue<Path> copies = new ConcurrentLinkedQueue<>();
    new WorkerThreads(
            "fetch", () -> WorkerThreads.names(files), "gantry-fetch-", new Cancellation())
        .forEach(
            FILES_AT_ONCE,
            files,
            file -> copies.add(session.fetch((Location.Remote) file)),
            () -> {});
    return copies.element().resolveSibling("");
  }
}
