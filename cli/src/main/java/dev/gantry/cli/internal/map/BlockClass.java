// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.map;

import ai.djl.nn.Block;
import dev.gantry.core.MisuseException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// Makes a block from the name of its class, which may be in a jar of the user's. The classes
/// stay usable until this object is closed.
public final class BlockClass implements AutoCloseable {
  private final URLClassLoader loader;

  /// @param classPath jars and folders
  /// @throws MisuseException if a jar or folder does not exist
  public BlockClass(List<Path> classPath) {
    loader =
        new URLClassLoader(
            classPath.stream().map(BlockClass::url).toArray(URL[]::new),
            BlockClass.class.getClassLoader());
  }

  private static URL url(Path path) {
    if (!Files.exists(path)) {
      throw new MisuseException("--classpath must name jars and folders (was " + path + ")");
    }
    try {
      return path.toUri().toURL();
    } catch (MalformedURLException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// @param name a class, `pkg.Class`, whose constructor without arguments is called; or a static
  ///     method without arguments, `pkg.Class#method`, which is called
  /// @throws MisuseException if the class or method does not exist, fails, or returns no block
  public Block make(String name) {
    int hash = name.indexOf('#');
    String className = hash < 0 ? name : name.substring(0, hash);
    Object made;
    try {
      Class<?> type = Class.forName(className, true, loader);
      made =
          hash < 0
              ? type.getConstructor().newInstance()
              : called(type, name.substring(hash + 1), name);
    } catch (ClassNotFoundException | NoClassDefFoundError e) {
      throw refused(name, "there is no class " + e.getMessage() + " on the class path", e);
    } catch (NoSuchMethodException e) {
      throw refused(
          name,
          hash < 0
              ? "the class needs a public constructor without arguments"
              : "the class needs a public static method '"
                  + name.substring(hash + 1)
                  + "' without arguments",
          e);
    } catch (InvocationTargetException | ExceptionInInitializerError e) {
      throw refused(name, "it failed with " + e.getCause(), e);
    } catch (ReflectiveOperationException | LinkageError e) {
      throw refused(name, "it cannot be called: " + e, e);
    }
    if (made instanceof Block block) {
      return block;
    }
    throw new MisuseException(
        "--block %s: this must be an ai.djl.nn.Block (was %s)"
            .formatted(name, made == null ? null : made.getClass().getName()));
  }

  private static Object called(Class<?> type, String method, String name)
      throws ReflectiveOperationException {
    var found = type.getMethod(method);
    if (!Modifier.isStatic(found.getModifiers())) {
      throw new MisuseException("--block " + name + ": the method must be static");
    }
    return found.invoke(null);
  }

  private static MisuseException refused(String name, String reason, Throwable cause) {
    MisuseException refused = new MisuseException("--block " + name + ": " + reason);
    refused.initCause(cause);
    return refused;
  }

  @Override
  public void close() {
    try {
      loader.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
