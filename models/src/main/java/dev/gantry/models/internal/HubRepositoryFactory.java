// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal;

import ai.djl.Model;
import ai.djl.modality.Input;
import ai.djl.repository.LocalRepository;
import ai.djl.repository.Metadata;
import ai.djl.repository.Repository;
import ai.djl.repository.RepositoryFactory;
import ai.djl.repository.SimpleRepository;
import ai.djl.translate.ServingTranslatorFactory;
import ai.djl.translate.TranslateException;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorFactory;
import ai.djl.util.JsonUtils;
import ai.djl.util.Pair;
import com.google.gson.JsonParseException;
import dev.gantry.models.TextTranslatorFactory;
import java.io.IOException;
import java.io.Reader;
import java.io.UncheckedIOException;
import java.lang.reflect.Type;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Stream;

/// Opens folders for DJL's `Criteria` as DJL itself does, and adds the translators of texts for a
/// folder of the hub, so that `Criteria` need no translator. DJL chooses a translator before it
/// makes a model, so a library can supply one only through a repository. DJL's service loader
/// finds this class.
public final class HubRepositoryFactory implements RepositoryFactory {
  @Override
  public Set<String> getSupportedScheme() {
    return Set.of("file");
  }

  @Override
  public Repository newInstance(String name, URI uri) {
    Path path = Path.of(uri.getPath() == null ? uri.getSchemeSpecificPart() : uri.getPath());
    return !isOfHub(path) && hasMetadata(path)
        ? new LocalRepository(name, path.toUri(), path) {}
        : new Folder(name, uri, path);
  }

  /// The translators for `Criteria` that name none. DJL's own rules apply to the inputs of DJL
  /// Serving.
  public static final class Translators implements TranslatorFactory {
    private final TextTranslatorFactory texts = new TextTranslatorFactory();

    @Override
    public Set<Pair<Type, Type>> getSupportedTypes() {
      return texts.getSupportedTypes();
    }

    @Override
    public <I, O> Translator<I, O> newInstance(
        Class<I> input, Class<O> output, Model model, Map<String, ?> arguments)
        throws TranslateException {
      if (input != Input.class) {
        return texts.newInstance(input, output, model, arguments);
      }
      Map<String, Object> others = new HashMap<>(arguments);
      others.remove("translatorFactory");
      return new ServingTranslatorFactory().newInstance(input, output, model, others);
    }
  }

  private static final class Folder extends SimpleRepository {
    Folder(String name, URI uri, Path path) {
      super(name, uri, path);
      if (isOfHub(path)) {
        arguments.putIfAbsent("translatorFactory", Translators.class.getName());
      }
    }
  }

  /// Whether a folder within has a `metadata.json` of DJL. In that case the folder is a repository
  /// of several models.
  private static boolean hasMetadata(Path path) {
    if (!Files.isDirectory(path)) {
      return false;
    }
    try (Stream<Path> files = Files.walk(path)) {
      return files
          .filter(file -> file.endsWith("metadata.json") && !path.equals(file.getParent()))
          .anyMatch(HubRepositoryFactory::isMetadata);
    } catch (IOException | UncheckedIOException _) {
      // DJL, too, takes a folder that cannot be searched for a single model.
      return false;
    }
  }

  private static boolean isMetadata(Path file) {
    try (Reader reader = Files.newBufferedReader(file)) {
      Metadata metadata = JsonUtils.GSON.fromJson(reader, Metadata.class);
      return metadata != null
          && metadata.getMetadataVersion() != null
          && metadata.getArtifacts() != null;
    } catch (IOException | JsonParseException _) {
      return false;
    }
  }

  private static boolean isOfHub(Path path) {
    return Stream.of("config.json", "modules.json")
            .anyMatch(file -> Files.isRegularFile(path.resolve(file)))
        && !namesTranslators(path.resolve("serving.properties"));
  }

  private static boolean namesTranslators(Path file) {
    if (!Files.isRegularFile(file)) {
      return false;
    }
    Properties settings = new Properties();
    try (Reader reader = Files.newBufferedReader(file)) {
      settings.load(reader);
    } catch (IOException fault) {
      throw new UncheckedIOException(fault);
    }
    return settings.containsKey("translatorFactory") || settings.containsKey("translator");
  }
}
