// .teamcity/settings.kts: share on a release tag, unseal the link in a later build, and collect on a schedule.
//
// The project has the parameters env.SEALPIPE_API_KEY, env.STAGING_PASSWORD and env.VAULT_SECRET_ID of the type
// password. TeamCity issues no token to a build, so the login to Vault is an AppRole. ${'$'} is a dollar sign of the
// shell; a percent sign would be a parameter of TeamCity.
import jetbrains.buildServer.configs.kotlin.*
import jetbrains.buildServer.configs.kotlin.buildSteps.script
import jetbrains.buildServer.configs.kotlin.triggers.schedule
import jetbrains.buildServer.configs.kotlin.triggers.vcs

version = "2024.12"

project {
    params {
        param("env.SEALPIPE_BASE_URL", "https://api.example.com/v1")
        param("env.SEALPIPE_LINK_BASE_URL", "https://links.example.com")
        param("env.SEALPIPE_STATE_DIR", "%system.teamcity.build.tempDir%/sealpipe")
        param("env.BIND", "teamcity:%teamcity.build.branch%:%build.vcs.number%")
    }
    buildType(Share)
    buildType(Unseal)
    buildType(Collect)
}

object Share : BuildType({
    name = "share"
    artifactRules = "link.sealed"
    vcs { root(DslContext.settingsRoot) }
    triggers { vcs { branchFilter = "+:refs/tags/v*" } }
    steps {
        script {
            dockerImage = "registry.example.com/acme/sealpipe:0.2.0"
            dockerRunParameters = "--user 0" // the agent restores the owner of files
            scriptContent = """
                set -eu
                sealpipe share --field 'User=text:staging' --field 'Password=env:STAGING_PASSWORD' \
                    --title 'Staging system' --expires-in 72h --seal-link --bind "${'$'}BIND" > link.sealed
            """.trimIndent()
        }
    }
})

object Unseal : BuildType({
    name = "unseal"
    vcs { root(DslContext.settingsRoot) }
    triggers { vcs { branchFilter = "+:refs/tags/v*" } }
    dependencies {
        dependency(Share) {
            snapshot { onDependencyFailure = FailureAction.FAIL_TO_START }
            artifacts { artifactRules = "link.sealed" }
        }
    }
    steps {
        script {
            dockerImage = "registry.example.com/acme/sealpipe:0.2.0"
            dockerRunParameters = "--user 0" // the agent restores the owner of files
            scriptContent = """
                set -eu
                sealpipe unseal --bind "${'$'}BIND" --sealed-file link.sealed --link-file link.txt
                exec < link.txt
                rm link.txt
                # In the shell's place: your program gets no key.
                exec env -u SEALPIPE_API_KEY -u STAGING_PASSWORD -u VAULT_SECRET_ID ./notify
            """.trimIndent()
        }
    }
})

object Collect : BuildType({
    name = "collect"
    params {
        param("env.VENDOR_REQUEST", "code-of-the-request")
        param("env.VAULT_ADDR", "https://vault.example.com")
        param("env.VAULT_ROLE_ID", "role-of-this-project")
    }
    triggers { schedule { schedulingPolicy = daily { hour = 6 } } }
    steps {
        script {
            dockerImage = "registry.example.com/acme/sealpipe:0.2.0"
            dockerRunParameters = "--user 0" // the agent restores the owner of files
            scriptContent = """
                set -eu
                sealpipe collect --to 'vault:secret/vendor/acme#user=User name,password=Password' \
                    --mode merge --after expire -- "${'$'}VENDOR_REQUEST" || [ "${'$'}?" = 15 ] # 15: no submission yet
            """.trimIndent()
        }
    }
})
